/* SPDX-License-Identifier: Apache-2.0 */
#include "twin.h"

void collections_run(struct rig *r)
{
    (void)r;
}
