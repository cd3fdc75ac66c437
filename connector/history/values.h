/* Paths of heads, values that hold others: what needs no file. */
#ifndef COW_HISTORY_VALUES_H
#define COW_HISTORY_VALUES_H

#include "history/history.h"

void cow_head_path(char path[COW_PATH_MAX], uint64_t id);
/* Free a fill value of TYPE in memory; HEAP: with what it points to. */
void cow_dataset_fill_free(hid_t type, bool heap, void *value);

#endif
