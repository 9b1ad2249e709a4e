#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Test of check-layers.sh, check-fmt.sh and the Makefile's layers: each rule is broken once, in a copy of the tree, and has to be noticed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=test/lab/lib/check.sh
. test/lab/lib/check.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
git ls-files -z --cached --others --exclude-standard .gitignore .clang-format Makefile hack pkg | tar -c --null -T - | tar -x -C "$tmp"
cd "$tmp"
git init -q . # check-layers.sh asks git for the files
git add -A
unset MAKEFLAGS MAKELEVEL

# layers TEXT [FILE]: TEXT in a file of its own, pkg/base/odd.c; builds base and checks it alone.
layers() {
    printf '/* SPDX-License-Identifier: Apache-2.0 */\n%b\n' "$1" >"${2:-pkg/base/odd.c}"
    git add -A
    # -Werror is not what is tested here
    make -s --no-print-directory pkg/base 'WARN=-w' && hack/check-layers.sh build/gcc base base
}
again() { rm -f pkg/base/odd.c; git rm -q --cached --ignore-unmatch pkg/base/odd.c; }
refused() { local rc=0; fails_with "$@" || rc=1; again; return $rc; } # TEXT COMMAND...

check "nothing is wrong" layers 'int base_odd(void);\nint base_odd(void) { return 1; }'
again
check "a name without the prefix" refused "global names without the prefix base_: odd" layers 'int odd(void) { return 1; }'
check "pure: printf" refused "refers to: __printf_chk" layers '#include <stdio.h>\nvoid base_odd(int a) { printf("%%d %%d", a, a); }'
check "pure: fortified read" refused "refers to: __read_chk" layers \
    '#include <unistd.h>\nint base_odd(int a, unsigned long n) { char b[8]; return (int)read(a, b, n) + b[0]; }'
check "pure: a clock" refused "refers to: clock_gettime" layers '#include <time.h>\nvoid base_odd(struct timespec *t) { clock_gettime(0, t); }'
check "pure: a variable" refused "keeps state in: counter" layers 'int base_odd(void) { static int counter; return ++counter; }'
check "pure: a variable with a value" refused "keeps state in: counter" layers 'static int counter = 7;\nint base_odd(void) { return ++counter; }'
check "pure: a variable of each thread" refused "keeps state in: counter" layers 'static _Thread_local int counter;\nint base_odd(void) { return ++counter; }'
check "pure: constants are none" layers 'static const char *const words[] = {"a", "b"};\nconst char *base_odd(int i) { return words[i]; }'
again
check "a layer above" refused "session/core.h: No such file" layers '#include "session/core.h"\nint base_odd(void) { return 1; }'
check "a layer above, by a path around the check" refused "goes around the layers" layers '#include "../audit/record.h"\nint base_odd(void) { return 1; }'
check "and one inside another" refused "goes around the layers" layers '#include "base/../../audit/record.h"\nint base_odd(void) { return 1; }' pkg/base/odd.h
rm -f pkg/base/odd.h
check "an #include that cannot be read here" refused "goes around the layers" layers '#define X "base/str.h"\n#include X\nint base_odd(void) { return 1; }'
printf '/* SPDX-License-Identifier: Apache-2.0 */\nint base_odd (void);\n' >pkg/base/odd.h
check "a layout of its own" fails_with "pkg/base/odd.h: 1 places" hack/check-fmt.sh
printf '/* SPDX-License-Identifier: Apache-2.0 */\nint base_odd(void);\n' >pkg/base/odd.h
check "the project's layout" hack/check-fmt.sh
rm pkg/base/odd.h
check "a banned function" refused "banned function" layers '#include <string.h>\nvoid base_odd(char *a, const char *b) { strcpy(a, b); }'
check "in a line that begins with *" refused "banned function" layers '#include <string.h>\nvoid base_odd(char **a, const char *b) {\n    *a = strcat(*a, b); }'
check "exit outside of programs" refused "exit() outside" layers '#include <stdlib.h>\nvoid base_odd(void) { exit(1); }'
printf 'int x;\n' >pkg/base/bare.h
git add -A
check "no licence line" fails_with "no SPDX line" hack/check-layers.sh build/gcc base base
rm pkg/base/bare.h
mkdir -p test/odd
printf '# SPDX-License-Identifier: Apache-2.0\ntest-odd:\n\t@hack/run-tests.sh $(VARIANT)/base true\n' >test/odd/module.mk
git add -A
check "a suite with a package's name" fails_with "two suites have one result: base" hack/check-layers.sh build/gcc base base
git rm -qrf test/odd
check "an archive that is not there" fails_with "libhf_none.a is missing" hack/check-layers.sh build/gcc "base none" base
sed -i 's/^DEPS_base      :=/& audit/' Makefile
check "a layer that depends on one above" fails_with "'audit' is not a layer below it" make -s print-layers
sed -i 's/^DEPS_base      := audit/DEPS_base      :=/' Makefile
mkdir pkg/odd
check "a package that is not listed" fails_with "pkg/odd is not listed" make -s print-layers
checks_done
