/* Programs that write files with history, and what their files must then hold.
 *
 * A scenario makes public HDF5 calls only (and forks, where a program of its own takes part), on one file, through
 * whatever access list it is given. While it works it keeps a picture in memory of what it wrote: plain arrays, made
 * without HDF5 from the same arguments. Each commit that it waited for is one state, numbered from 1: the versions
 * there are, with the content of each. Content of the newest state = content of its newest version.
 *
 * Nothing here knows the connector but its options and the names "1", "2", "3" ... that it gives to versions. */
#ifndef SCENARIOS_H
#define SCENARIOS_H

#include <hdf5.h>

#include <stdbool.h>
#include <stddef.h>

#define SCENARIO_WRONG   (-1) /* the file holds something that was never committed */
#define SCENARIO_REFUSED (-2) /* the file cannot be opened: right before the first commit, else wrong */

typedef struct scenario_run {
    const char *file; /* does not exist yet */
    hid_t fapl;       /* through the connector, with the scenario's options; its own copy is not made */
    hid_t stock_fapl; /* native HDF5 */
    /* May be NULL. STATE is committed, as HDF5 has reported; no other call is under way. */
    void (*committed)(void *context, int state);
    /* May be NULL: then the scenarios that need it (fails) cannot run. The NTH sync of the file from now on fails,
     * 0: no more. */
    void (*fail_sync)(void *context, int nth);
    void *context;
} scenario_run;

struct scenario_work;

typedef struct scenario {
    const char *name;
    void (*work)(struct scenario_work *work);
    const char *options;    /* of the connector */
    bool kill_only;         /* power cuts are not covered by what is promised (sync=off) */
    bool loses_newest;      /* a power cut may take commits that were reported (sync=normal) */
    bool fails;             /* needs fail_sync */
    bool forks;             /* starts processes of its own */
    unsigned sound_commits; /* so many must meet no faults: the versions that they make are restored later on */
} scenario;

extern const scenario scenarios[];
extern const size_t scenario_count;

/* 0; -1: a call of HDF5 failed (or a process of the scenario saw something wrong). The file is closed in both cases. */
int scenario_run_all(const scenario *s, const scenario_run *run);

/* What the scenario's states are, computed without HDF5. */
typedef struct scenario_states scenario_states;
scenario_states *scenario_expect(const scenario *s);
void scenario_states_free(scenario_states *states);
/* How many states: they are 1 to that. */
int scenario_states_count(const scenario_states *states);
int scenario_state_versions(const scenario_states *states, int state);

/* Which state the file is in, all its versions read and compared, and no more versions than these. Through the
 * connector (STOCK false, FAPL selects it) or by native HDF5 alone (STOCK). A state's number, SCENARIO_WRONG or
 * SCENARIO_REFUSED. WHY (may be NULL): what is wrong. When several states are alike, the highest of them. */
int scenario_check(const scenario_states *states, const char *file, hid_t fapl, bool stock, char *why, size_t size);

#endif
