/* What the random program can do. Each operation says what it does with note() before it does it, does it to both sides,
 * and compares the answers. false: it had nothing to work on.
 */
#ifndef DIFFERENTIAL_OPERATIONS_H
#define DIFFERENTIAL_OPERATIONS_H

#include <stdbool.h>

bool op_again(void);
bool op_attribute(void);
bool op_chunk(void);
bool op_close(void);
bool op_comment(void);
bool op_copy(void);
bool op_copy_files(void);
bool op_dataset(void);
bool op_extent(void);
bool op_flush(void);
bool op_group(void);
bool op_link(void);
/* Before any. */
void know_links(void);
bool op_list(void);
bool op_many_attributes(void);
bool op_multi(void);
bool op_open(void);
bool op_read(void);
bool op_reference(void);
bool op_reference_count(void);
bool op_replace(void);
bool op_reopen(void);
bool op_restore(void);
bool op_forget(void);
bool op_truncate(void);
bool op_type(void);
bool op_version(void);
bool op_write(void);

#endif
