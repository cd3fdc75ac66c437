/* Runs of keys in a table (store/lookup.h), as hashes/<pool> and snapshot_rows have them. The input's first byte says how many rows
 * may be noted, and whether entries are added; the rest are the table's rows, the last ones perhaps zeros. */
#include "fuzz.h"

#include "base/bytes.h"
#include "base/error.h"
#include "store/lookup.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ASKED = 100, TAKEN = 100000 };

/* The table is used again when the runs are closed. */
static void keep(cow_table *table)
{
    (void)table;
}

typedef struct told {
    uint64_t value; /* that is looked for */
    unsigned long count;
} told;

static int look(void *context, uint64_t value)
{
    told *t = context;

    t->count++;
    return value == t->value;
}

/* Whatever a run says, a search ends, and tells no more than there is. */
static void ask(cow_lookup *lookup, uint64_t key, uint64_t rows)
{
    told t = {.value = UINT64_MAX - 1};

    cow_lookup_find(lookup, key, look, &t);
    assert(t.count <= rows);
    cow_error_clear();
}

static void ask_all(cow_lookup *lookup, const cow_table *table, const uint8_t *data, size_t rows)
{
    for (size_t i = 0; i < rows && i < ASKED; i++) {
        uint64_t key = cow_get64(data + (rows - 1 - i) * COW_LOOKUP_ROW);

        ask(lookup, key, table->rows);
        ask(lookup, key + 1, table->rows);
    }
    ask(lookup, 1, table->rows);
    ask(lookup, UINT64_MAX, table->rows);
}

static void take_all(cow_lookup *lookup, uint64_t rows)
{
    uint64_t value;
    unsigned long taken = 0;

    while (cow_lookup_take(lookup, &value) == 1)
        assert(++taken <= rows && taken < TAKEN);
    cow_error_clear();
}

/* What was in order stays so, and has what was added, also when it is opened again. */
static void add(cow_lookup **lookup, cow_table *table, size_t count, uint64_t more)
{
    cow_lookup_entry *entry = calloc(count + 1, sizeof *entry);
    uint64_t noted = cow_lookup_noted(*lookup) + more;
    bool good = cow_lookup_check(*lookup) == 0;
    told t = {.value = 7 * (count - 1)};

    if (entry == NULL)
        abort();
    cow_error_clear();
    for (size_t i = 0; i < count; i++)
        entry[i] = (cow_lookup_entry){UINT64_C(0x9e3779b97f4a7c15) * (i + 1), 7 * i};
    if (cow_lookup_add(*lookup, entry, count, noted) == 0) {
        assert(cow_lookup_noted(*lookup) == noted);
        cow_lookup_close(*lookup);
        *lookup = cow_lookup_open(table, UINT64_MAX, NULL);
        assert(*lookup != NULL && cow_lookup_noted(*lookup) == noted);
        if (good && count > 0) {
            assert(cow_lookup_check(*lookup) == 0);
            assert(cow_lookup_find(*lookup, UINT64_C(0x9e3779b97f4a7c15) * count, look, &t) == 1);
        }
    }
    free(entry);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t rows = size == 0 ? 0 : (size - 1) / COW_LOOKUP_ROW;
    unsigned how = size == 0 ? 0 : data[0];
    cow_table *table = cow_table_memory(COW_LOOKUP_ROW);
    void (*close)(cow_table *) = table == NULL ? NULL : table->close;
    cow_lookup *lookup;

    if (table == NULL || cow_table_append(table, rows, data + 1, NULL) < 0)
        abort();
    table->close = keep;
    if ((lookup = cow_lookup_open(table, how & 1 ? 1000 : UINT64_MAX, NULL)) != NULL) {
        assert(cow_lookup_entries(lookup) <= table->rows);
        ask_all(lookup, table, data + 1, rows);
        take_all(lookup, table->rows);
        cow_lookup_check(lookup);
        if (how & 2)
            add(&lookup, table, how >> 3, how & 4);
        if (lookup != NULL)
            ask_all(lookup, table, data + 1, rows);
    }
    cow_lookup_close(lookup);
    close(table);
    cow_error_clear();
    return 0;
}

/* Nothing yet; one run; two runs, vacant ones and loose ones. */
size_t fuzz_first_input(unsigned n, uint8_t *to, size_t room)
{
    static const size_t count[3][3] = {{0, 0, 0}, {150, 0, 0}, {230, 20, 9}};
    cow_table *table = cow_table_memory(COW_LOOKUP_ROW);
    void (*close)(cow_table *) = table->close;
    cow_lookup *lookup;
    cow_lookup_entry entry[256];
    uint64_t noted = 0;
    size_t rows;

    table->close = keep;
    lookup = cow_lookup_open(table, 0, NULL);
    for (unsigned i = 0; n < 3 && i < 3; i++) {
        size_t have = count[n][i];

        if (have == 0)
            continue;
        for (size_t k = 0; k < have; k++)
            entry[k] = (cow_lookup_entry){k % 10 == 9 ? 0 : (k + i) * UINT64_C(0xd1b54a32d192ed03), noted + k};
        if (i < 2)
            noted += have;
        if (cow_lookup_add(lookup, entry, have, noted) < 0)
            abort();
    }
    cow_lookup_close(lookup);
    rows = table->rows < (room - 1) / COW_LOOKUP_ROW ? table->rows : (room - 1) / COW_LOOKUP_ROW;
    to[0] = (uint8_t)(n == 2 ? 2 + 8 * 30 : 6 + 8 * 5);
    if (n < 3 && rows > 0 && table->read(table, 0, rows, to + 1) < 0)
        abort();
    close(table);
    return n < 3 ? 1 + rows * COW_LOOKUP_ROW : 0;
}
