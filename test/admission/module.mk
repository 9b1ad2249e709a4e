# SPDX-License-Identifier: Apache-2.0
# Who may write what, on a real API server: see test/admission/README.md.

ADMISSION_SRC := $(wildcard test/admission/*.c)
ADMISSION_OBJ := $(ADMISSION_SRC:%.c=$(BUILD)/%.o)
$(ADMISSION_OBJ): $(BUILD)/%.o: %.c build/inc/base/.stamp
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Ibuild/inc/base $(call pc_cflags,libcurl libcjson) -MMD -MP -c -o $@ $<
$(BUILD)/test/admission/admission: $(ADMISSION_OBJ) $(LIB_base)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(call pc_libs,libcurl libcjson libcrypto)
-include $(ADMISSION_OBJ:.o=.d)

SUITES += test-admission
.PHONY: test-admission mutants-admission
## test-admission     every allowed and refused write, with node-bound tokens, on a real API server
test-admission: $(BUILD)/test/admission/admission
	@hack/run-tests.sh $(VARIANT)/admission test/admission/run.sh $<
## mutants-admission  removes each rule of CRDs, policies and roles once; fails unless a case notices
mutants-admission: $(BUILD)/test/admission/admission
	@test/admission/mutants.sh $<
