/* MPI-IO: all processes of a communicator open or create a file together, each by the same call, and what native HDF5 does
 * then waits for all of them. So a process that is to refuse the call must not do it alone: the others would wait for ever.
 * Before native HDF5 is called they agree.
 *
 * A file with history is read by each process for itself, through MPI-IO: the newest state as well, though it needs nothing of
 * h5cow elsewhere, because parallel HDF5 reads no virtual datasets.
 *
 * h5cow knows no MPI, and a program has any: its communicators are pointers or numbers, and its types and operations other
 * values in each. MPI_Comm_split needs none of these: processes that come to the same answer are put into one part, and they
 * all did when that part is as large as the whole. */
#include "vol/vol.h"

#include "library/library.h"

#include <string.h>

/* MPI_COMM_NULL of MPICH and what comes from it. */
#define NULL_NUMBER 0x04000000

typedef union communicator {
    void *pointer;
    int number;
} communicator;

static bool by_pointer(void)
{
    return cow_library.differs.null_pointer != NULL;
}

static int split(communicator whole, int colour, communicator *part)
{
    int (*pointers)(void *, int, int, void **);
    int (*numbers)(int, int, int, int *);

    memcpy(&pointers, &cow_library.differs.split, sizeof pointers);
    memcpy(&numbers, &cow_library.differs.split, sizeof numbers);
    return by_pointer() ? pointers(whole.pointer, colour, 0, &part->pointer)
                        : numbers(whole.number, colour, 0, &part->number);
}

/* 0: that failed. */
static int size_of(communicator c)
{
    int (*pointers)(void *, int *), (*numbers)(int, int *);
    int size = 0, status;

    memcpy(&pointers, &cow_library.differs.size, sizeof pointers);
    memcpy(&numbers, &cow_library.differs.size, sizeof numbers);
    status = by_pointer() ? pointers(c.pointer, &size) : numbers(c.number, &size);
    return status == 0 ? size : 0;
}

static void give_back(communicator *c)
{
    int (*pointers)(void **), (*numbers)(int *);

    memcpy(&pointers, &cow_library.differs.free, sizeof pointers);
    memcpy(&numbers, &cow_library.differs.free, sizeof numbers);
    if (by_pointer())
        pointers(&c->pointer);
    else
        numbers(&c->number);
}

static bool is_null(communicator c)
{
    return by_pointer() ? c.pointer == NULL || c.pointer == cow_library.differs.null_pointer : c.number == NULL_NUMBER;
}

bool cow_mpi_list(hid_t fapl)
{
    const cow_hdf5_versions *mpi = &cow_library.differs;
    bool parallel = false;

    if (mpi->get_fapl_mpio == NULL || mpi->split == NULL || mpi->size == NULL || mpi->free == NULL)
        return false;
    H5E_BEGIN_TRY
    {
        parallel = H5Pget_driver(fapl) == cow_library_driver(COW_VFD_MPIO);
    }
    H5E_END_TRY
    return parallel;
}

int cow_mpi_read_alone(const char *name, hid_t under)
{
    if (cow_library.differs.set_collective_metadata != NULL &&
        cow_library.differs.set_collective_metadata(under, false) < 0)
        return cow_error_native("%s: cannot prepare to open the file", name);
    return 0;
}

int cow_mpi_agree(const char *name, hid_t fapl, int answer)
{
    communicator whole = {0}, part = {0};
    bool same;

    if (!cow_mpi_list(fapl))
        return answer;
    H5E_BEGIN_TRY
    {
        if (cow_library.differs.get_fapl_mpio(fapl, &whole, NULL) < 0) /* a copy, which is given back */
            whole = by_pointer() ? (communicator){.pointer = NULL} : (communicator){.number = NULL_NUMBER};
    }
    H5E_END_TRY
    if (is_null(whole))
        return answer;
    same = split(whole, answer < 0 ? 0 : answer + 1, &part) == 0 && size_of(part) == size_of(whole);
    give_back(&part);
    give_back(&whole);
    if (answer >= 0 && !same)
        return cow_error(
            COW_READ_ONLY,
            "%s: another process of this MPI program does not open it, or finds something else by that name, and "
            "all have to: its error says why",
            name);
    return answer;
}
