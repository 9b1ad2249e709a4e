/* SPDX-License-Identifier: Apache-2.0
 *
 * kubectl-holdfast: the operators' tool; as `kubectl holdfast` when it is on the PATH.
 */
#include "cli/cli.h"

int main(int argc, char **argv)
{
    return cli_main(argc, argv, stdout, stderr);
}
