#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check-layers.sh BUILD "PKGS" "PURE": what the compiler cannot refuse.
#   1. every global symbol of pkg/<p> starts with "<p>_"
#   2. a pure archive refers to nothing but its DEPS, its named libraries and a short list of libc functions, and keeps nothing
#      in variables of its own
#   3. an #include names a file of the own folder or of a layer, never a path around the layers
#   4. banned functions appear nowhere; exit() only in cmd/ and test/
#   5. pkg/README.md shows the layers that the Makefile has
#   6. every file carries its licence line
#   7. no two suites leave their result under one name: the first one would not be counted
set -uo pipefail
build=$1 pkgs=$2 pure=$3
pass=0 fail=0
ok() { pass=$((pass + 1)); }
bad() { fail=$((fail + 1)); echo "check: $*"; }
layers=$(make -s --no-print-directory print-layers)
deps_of() { sed -n "s/^$1:[PD]:\(.*\)/\1/p" <<< "$layers"; }

for p in $pkgs; do
  lib=$build/lib/libhf_$p.a
  [ -s "$lib" ] || { bad "$lib is missing"; continue; }
  wrong=$(nm --defined-only -g "$lib" 2>/dev/null | awk 'NF==3 && $2 ~ /[TDBRCV]/ {print $3}' | grep -Ev "^_*${p}_|^__(asan|odr_asan|tsan|ubsan)" || true)
  if [ -n "$wrong" ]; then bad "pkg/$p: global names without the prefix ${p}_: $(tr '\n' ' ' <<< "$wrong")"; else ok; fi
done

libc='mem(cpy|move|set|cmp|chr|rchr|mem)|str(len|nlen|cmp|ncmp|chr|rchr|str|spn|cspn|casecmp|ncasecmp|toul|toull|toll|tol|dup|ndup)|strncpy|bcmp|v?snprintf|inet_(pton|ntop)|qsort|bsearch|abort|ffs|isalnum|isdigit|isxdigit|tolower|toupper|__ctype_.*|__((mem|str|stp)n?(cpy|move|set|cat)|v?snprintf)_chk|__stack_chk_fail|__assert_fail|_GLOBAL_OFFSET_TABLE_|__isoc(99|23)_(v?sscanf|strto[a-z]+)|__errno_location|__(asan|ubsan|tsan|odr_asan|sanitizer)_.*|__popcountdi2'
declare -A ext=([base]='EVP_.*|SHA256.*|CRYPTO_.*|OPENSSL_.*|malloc|calloc|realloc|free' [contract]='cJSON_.*' [audit]='' )
for p in $pure; do
  lib=$build/lib/libhf_$p.a
  [ -s "$lib" ] || { bad "$lib is missing"; continue; }
  allow="$libc"; for d in $p $(deps_of "$p"); do allow+="|${d}_.*"; done
  [ -n "${ext[$p]:-}" ] && allow+="|${ext[$p]}"
  own=$(nm --defined-only "$lib" 2>/dev/null | awk 'NF==3{print $3}' | sort -u)
  wrong=$(nm -u "$lib" 2>/dev/null | awk '$1=="U"{print $2}' | sed 's/@.*//' | sort -u | grep -Evx "($allow)" | grep -vxF -e "$own" || true)
  if [ -n "$wrong" ]; then bad "pkg/$p is pure, but refers to: $(tr '\n' ' ' <<< "$wrong")"; else ok; fi
  # Variables. Not state: base_mem_* is the one test hook (failed allocations), of each thread; overwrite is a constant that no
  # compiler may look through; sanitizers add their own.
  wrong=$(objdump -t "$lib" 2>/dev/null | awk '/[ \t]\.(data|bss|tdata|tbss)(\.|\t)/ && !/[ \t]\.data\.rel\.ro/ && $NF !~ /^\./ {print $NF}' |
    grep -Ev '^((.*\.)?overwrite(\.[0-9]+)?|base_mem_(left|seen)_|_*(odr_)?(asan|tsan|ubsan)_.*|\.?L.*|_*sancov.*)$' || true)
  if [ -n "$wrong" ]; then bad "pkg/$p is pure, but keeps state in: $(tr '\n' ' ' <<< "$wrong")"; else ok; fi
done

# The compiler finds "x/y.h" through build/inc of the package; "../x/y.h" and "/x/y.h" it finds around that.
hits=$(grep -nE '^\s*#\s*include\s*["<]([^">]*/)?(\.\./|/)|^\s*#\s*include\s+[A-Za-z_]' $(git ls-files 'pkg/*.c' 'pkg/*.h') /dev/null || true)
if [ -n "$hits" ]; then bad "an #include that goes around the layers:"; echo "$hits"; else ok; fi

files=$(git ls-files '*.c' '*.h')
banned='\b(strcpy|strcat|sprintf|vsprintf|strtok|atoi|atol|gets|alloca|system)\s*\('
comment='^[^:]*:[0-9]+:\s*(\*([ /]|$)|/\*|//)' # a line of one: "* text", not "*p = ..."
hits=$(grep -nE "$banned" $files /dev/null | grep -vE "$comment" || true)
if [ -n "$hits" ]; then bad "banned function:"; echo "$hits"; else ok; fi
hits=$(grep -nE '(^|[^a-z_])exit\s*\(' $(git ls-files 'pkg/*.c' 'pkg/*.h' | grep -v _test.c) /dev/null | grep -vE "$comment" || true)
if [ -n "$hits" ]; then bad "exit() outside cmd/:"; echo "$hits"; else ok; fi

if out=$(hack/check-layer-table.sh); then ok; else bad "$out"; fi

miss=$(git ls-files | grep -vE '(^LICENSE$|go\.sum$|go\.mod$|\.json$|\.gitignore$|corpus/|testdata/|\.golden$|Cargo\.lock$)' | while read -r f; do [ -f "$f" ] && ! head -5 "$f" | grep -q 'SPDX-License-Identifier: Apache-2.0' && echo "$f"; done)
if [ -n "$miss" ]; then bad "no SPDX line in the first five lines of:"; echo "$miss"; else ok; fi

suites() { # of each package, and of each module.mk (which may have two forms of one)
  printf '%s\n' $pkgs
  git ls-files 'test/*.mk' | while read -r f; do grep -o 'run-tests\.sh \$(VARIANT)/[a-z0-9-]*' "$f" | sort -u; done | sed 's,.*/,,'
}
twice=$(suites | sort | uniq -d)
if [ -n "$twice" ]; then bad "two suites have one result: $(tr '\n' ' ' <<< "$twice")"; else ok; fi

echo "check: $pass passed, $fail failed"
[ "$fail" -eq 0 ]
