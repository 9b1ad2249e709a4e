/* SPDX-License-Identifier: Apache-2.0
 *
 * The state x event tables of the agent's core: which cells were reached. Simulator runs and the unit tests
 * of pkg/session add what they reached to the file that HOLDFAST_CELLS names, a line for each; `sim cells
 * FILE` draws the tables from it. A cell is reached, or its handler is an assertion that fails when an event
 * comes there after all: a cell that is neither is a hole, and so is one that is both.
 */
#include "sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int sim_cells_note(const uint64_t cells[SESSION_CELL_WORDS])
{
    const char *path = getenv("HOLDFAST_CELLS");
    FILE *f = path ? fopen(path, "ae") : NULL;
    int bad;

    if (!path)
        return 0;
    if (!f) {
        printf("HOLDFAST_CELLS=%s cannot be written\n", path);
        return -1;
    }
    bad = fprintf(f, "sim %016" PRIx64 " %016" PRIx64 " %016" PRIx64 " %016" PRIx64 "\n", cells[0], cells[1],
                  cells[2], cells[3]) < 0;
    return fclose(f) || bad ? -1 : 0;
}

static bool has(const uint64_t cells[SESSION_CELL_WORDS], unsigned i)
{
    return (cells[i / 64] >> i % 64 & 1) != 0;
}

/* What the file says, of the simulator and of the unit tests. */
static bool take(FILE *f, uint64_t sim[SESSION_CELL_WORDS], uint64_t tests[SESSION_CELL_WORDS])
{
    char who[8];
    uint64_t x[SESSION_CELL_WORDS];
    unsigned from_sim = 0, from_tests = 0;

    while (fscanf(f, "%7s %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64, who, &x[0], &x[1], &x[2], &x[3]) ==
           5) {
        bool is_sim = strcmp(who, "sim") == 0;

        from_sim += is_sim;
        from_tests += !is_sim;
        for (unsigned i = 0; i < SESSION_CELL_WORDS; i++)
            (is_sim ? sim : tests)[i] |= x[i];
    }
    return feof(f) && from_sim && from_tests;
}

static void head(unsigned first)
{
    struct session_cell cell;
    const char *state = NULL;

    for (unsigned i = first; session_core_cell(i, &cell) && (!state || strcmp(cell.state, state) == 0); i++) {
        if (!state)
            printf("\n%-12s", cell.machine);
        printf(" %-9s", cell.event);
        state = cell.state;
    }
}

int sim_cells_report(const char *path)
{
    uint64_t sim[SESSION_CELL_WORDS] = {0}, tests[SESSION_CELL_WORDS] = {0};
    unsigned n = 0, by_sim = 0, by_tests = 0, impossible = 0, holes = 0;
    const char *machine = "", *state = "";
    struct session_cell cell;
    FILE *f = fopen(path, "re");
    bool ok = f && take(f, sim, tests);

    if (f)
        (void)fclose(f);
    if (!ok) {
        printf("%s holds nothing of the simulator, or nothing of the unit tests\ncells: 0 passed, 1 failed\n",
               path);
        return 1;
    }
    printf("S reached by the simulator, t by unit tests alone, - impossible: its handler is an assertion, "
           "! neither (or both)\n");
    for (; session_core_cell(n, &cell); n++) {
        bool reached = has(sim, n) || has(tests, n), hole = reached == cell.impossible;

        if (strcmp(machine, cell.machine) != 0)
            head(n);
        if (strcmp(machine, cell.machine) != 0 || strcmp(state, cell.state) != 0)
            printf("\n%-12s", cell.state);
        machine = cell.machine;
        state = cell.state;
        printf(" %-9s", hole ? "!" : cell.impossible ? "-" : has(sim, n) ? "S" : "t");
        by_sim += has(sim, n);
        by_tests += !has(sim, n) && has(tests, n);
        impossible += cell.impossible;
        holes += hole;
    }
    printf(
        "\n%u cells: %u reached by the simulator, %u more by unit tests, %u impossible, %u of neither kind\n",
        n, by_sim, by_tests, impossible, holes);
    printf("cells: %u passed, %u failed\n", n - holes, holes);
    return holes ? 1 : 0;
}
