/* The number of the process, kept in a page that the kernel empties in a child (MADV_WIPEONFORK, since Linux 4.14): so it is known
 * without pthread_atfork, which does not hear of every child. Where there is no such page, the kernel is asked. */
#include "base/process.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

static struct {
    atomic_bool tried;
    _Atomic(_Atomic(pid_t) *) page; /* 0 in it: not asked yet in this process */
} number;

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void make_page(void)
{
    void *page;

    if (atomic_exchange(&number.tried, true))
        return; /* another thread has it, or soon will */
    page = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
#ifdef MADV_WIPEONFORK
    /* who takes any advice follows none: emulators call all of it done */
    if (madvise(page, page_size(), -1) != 0 && madvise(page, page_size(), MADV_WIPEONFORK) == 0) {
        atomic_store(&number.page, page);
        return;
    }
#endif
    munmap(page, page_size());
}

/* The library is unloaded; what is asked after that, while the process ends, goes to the kernel. */
__attribute__((destructor)) static void give_back(void)
{
    void *page = atomic_exchange(&number.page, NULL);

    if (page != NULL)
        munmap(page, page_size());
}

pid_t cow_process_id(void)
{
    _Atomic(pid_t) *page = atomic_load(&number.page);
    pid_t id = page == NULL ? 0 : atomic_load_explicit(page, memory_order_relaxed);

    if (id != 0)
        return id;
    if (page == NULL)
        make_page();
    id = getpid();
    if ((page = atomic_load(&number.page)) != NULL)
        atomic_store_explicit(page, id, memory_order_relaxed);
    return id;
}
