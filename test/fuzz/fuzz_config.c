/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_config.c - the agent's configuration file.
 *
 * Input: the YAML. What is refused changes nothing and is named by file, option and remedy; what is taken
 * keeps every option within its row of the table, and no deadline beyond the caps comes out of it.
 */
#include "fuzz.h"

#include "agent/config.h"

static void in_range(const struct agent_config *c)
{
    for (size_t i = 0; i < agent_options_n; i++) {
        const struct agent_option *o = &agent_options[i];
        const char *at = (const char *)c + o->offset;
        unsigned choices = 1;

        if (o->type == AGENT_OPT_INT) {
            int64_t v = *(const int64_t *)(const void *)at;

            CHECK(v >= o->min && v <= o->max, "%s is %lld", o->path, (long long)v);
        } else if (o->type == AGENT_OPT_ENUM) {
            for (const char *p = o->choices; *p; p++)
                choices += *p == '|';
            CHECK(*(const int64_t *)(const void *)at >= 0 && *(const int64_t *)(const void *)at < choices,
                  "%s is %lld", o->path, (long long)*(const int64_t *)(const void *)at);
        } else {
            CHECK(memchr(at, 0, o->size), "%s has no end", o->path);
        }
    }
}

static void timing(const struct agent_config *c)
{
    struct contract_timing t;
    struct base_err err = {0};

    if (agent_config_timing(c, &t, &err)) {
        CHECK(err.msg[0], "refused without a reason");
        return;
    }
    CHECK(t.lease <= 300 * BASE_SEC && t.grant <= 30 * BASE_SEC && t.grant >= 6 * BASE_SEC,
          "beyond the caps");
    CHECK(t.interval > 0 && t.interval <= t.grant / 3 && t.guard < t.lease, "no room to renew");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct agent_config *c = malloc(sizeof *c), *before = malloc(sizeof *c);
    struct base_err err = {0};
    int rc;

    if (c && before) {
        memset(c, 0x5a, sizeof *c);
        memset(before, 0x5a, sizeof *c);
        rc = agent_config_parse(c, fuzz_text(data, size), "agent.yaml", NULL, &err);
        if (rc) {
            CHECK(memcmp(c, before, sizeof *c) == 0, "refused, but something was written");
            CHECK(strstr(err.msg, "agent.yaml"), "no file in '%s'", err.msg);
            for (const char *p = err.msg; *p; p++)
                CHECK((unsigned char)*p >= 0x20 && *p != 0x7f, "byte %02x in an error text",
                      (unsigned char)*p);
        } else {
            in_range(c);
            timing(c);
            if (agent_config_policy(c, &err))
                CHECK(err.msg[0], "refused without a reason");
        }
    }
    free(c);
    free(before);
    return 0;
}
