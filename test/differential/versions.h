/* Files and their versions: a version more after each close that changed something; of the native file a copy is kept
 * then, which the version must equal for ever.
 */
#ifndef DIFFERENTIAL_VERSIONS_H
#define DIFFERENTIAL_VERSIONS_H

#include "compare.h"
#include "run.h"

void create_pair(void);
void close_pair(void);
/* Both trees as they are now. */
/* What is the same for all comparisons of the head. */
comparison head_comparison(void);
void full_check(void);
/* Versions against their copies: a few, or ALL. */
void check_versions(bool all);

#endif
