/* SPDX-License-Identifier: Apache-2.0
 *
 * base/mutant.h - guards that a test build can remove by name.
 *
 *     if (row->rv_moved || base_mutant("renew.rv")) ...
 *
 * In every normal build base_mutant() is the constant 0 and the compiler drops the branch. `make
 * mutants-core` builds with -DHOLDFAST_MUTANTS, where it is true for the one name in the environment variable
 * HOLDFAST_MUTANT; a mutant that no test notices is a missing test.
 */
#ifndef BASE_MUTANT_H
#define BASE_MUTANT_H

#ifdef HOLDFAST_MUTANTS
#include <stdlib.h>
#include <string.h>

static inline int base_mutant(const char *name)
{
    const char *chosen = getenv("HOLDFAST_MUTANT");
    return chosen != NULL && strcmp(chosen, name) == 0;
}
#else
#define base_mutant(name) 0
#endif

#endif
