/* Which process this is, asked for each write: what a parent has opened is not a child's. getpid() asks the kernel each time. */
#ifndef COW_PROCESS_H
#define COW_PROCESS_H

#include <sys/types.h>

/* What getpid() tells, also in a child, however that was made. Any thread. */
pid_t cow_process_id(void);

#endif
