/* How long a process of a test may take. What counts is the time that it computes, since the machine may have much else
 * to do; and not what the kernel does for it, since pages that it asks for may take the kernel twenty times as long beside other programs. A
 * process that waits for ever is ended as well, very much later. */
#ifndef TEST_WAITING_H
#define TEST_WAITING_H

#include <sys/time.h>
#include <unistd.h>

#define WAITING_SECONDS 1500u

/* From now on SECONDS of computing; then SIGVTALRM ends the process. Anew with each call. */
static inline void limit_computing(int seconds)
{
    const struct itimerval computing = {.it_value.tv_sec = seconds};

    setitimer(ITIMER_VIRTUAL, &computing, NULL);
    alarm(WAITING_SECONDS);
}

#endif
