# SPDX-License-Identifier: Apache-2.0
# pkg/kube against the real API server: see test/kubeapi/main.c.

KUBETEST_OBJ := $(BUILD)/test/kubeapi/main.o
$(KUBETEST_OBJ): $(BUILD)/%.o: %.c build/inc/kube/.stamp
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Ibuild/inc/kube -MMD -MP -c -o $@ $<
$(BUILD)/test/kube-apiserver: $(KUBETEST_OBJ) $(foreach l,$(call linkset,kube),$(BUILD)/lib/libhf_$(l).a)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(call pc_libs,$(call linkext,kube))
-include $(KUBETEST_OBJ:.o=.d)

SUITES += test-kube-apiserver
.PHONY: test-kube-apiserver
## test-kube-apiserver  the API client on a real API server, also stopped and killed
test-kube-apiserver: $(BUILD)/test/kube-apiserver
	@hack/run-tests.sh $(VARIANT)/kube-apiserver test/kubeapi/run.sh $<
.PHONY: mutants-kube
## mutants-kube       removes each guard of loop, http and kube once; fails unless a unit test notices
mutants-kube:
	@test/kubeapi/mutants.sh
