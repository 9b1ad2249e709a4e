/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/tar.h - a tar archive (POSIX ustar), written file by file.
 *
 * Pure but for the stream: members are regular files of mode 0600, owner root, with the time that is given.
 * The caller looks at the stream's error indicator when all is written.
 */
#ifndef CLI_TAR_H
#define CLI_TAR_H

#include <stdio.h>

#include "base/err.h"
#include "base/str.h"
#include "base/time.h"

/* `name`: at most 255 bytes, cut at a '/' into 155 and 100. BASE_OK, or BASE_EINVAL (name or size). */
int cli_tar_add(FILE *out, const char *name, struct base_str content, base_wall when, struct base_err *err);
/* Two empty blocks. */
void cli_tar_end(FILE *out);

#endif
