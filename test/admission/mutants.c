/* SPDX-License-Identifier: Apache-2.0 */
#include "admission.h"
int adm_mutants(const struct adm_lab *lab, const struct adm_suite *suite, const char *only)
{
    return 1;
}
