/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/cli.h - the operators' tool, as a function.
 *
 * Driving. Reads the API server, audit files and the agents' audit pages; writes nothing but what `claims
 * prune` deletes. Exit status: 0 = done, all is well; 1 = looked, and something is not well (not Ready, a
 * flaw in a trail, nothing found, a deletion that was refused); 2 = the command line is wrong; 3 = could not
 * look.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdio.h>

int cli_main(int argc, char **argv, FILE *out, FILE *err);

#endif
