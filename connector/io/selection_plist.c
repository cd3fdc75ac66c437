/* A selection that is in the transfer property list (H5S_PLIST, H5Pset_dataset_io_hyperslab_selection). No public call tells
 * it. So HDF5 shows it: a dataset of the same extent in memory, of bytes that are not zero, where zeros are written with that
 * selection. What is zero is selected; hyperslabs are always in row-major order, so that the points say all of it.
 */
#include "io/selection.h"

#include "base/error.h"
#include "base/ids.h"
#include "base/vector.h"
#include "library/library.h"
#include "native/native.h"
#include "store/index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FILE_INCREMENT (64u << 10)
#define MOST_ELEMENTS  ((uint64_t)1 << 44) /* address space for as many zeros; none of them takes memory */
#define CHUNK_ELEMENTS 4096

typedef struct finding {
    unsigned rank;
    hsize_t extent[COW_MAX_RANK], chunk[COW_MAX_RANK];
    hid_t dataset;
    hsize_t *chunks; /* n times rank */
    hsize_t *points; /* count times rank */
    size_t n, room, count, points_room;
} finding;

static int append(hsize_t **list, size_t *count, size_t *room, unsigned rank, const hsize_t place[])
{
    if (cow_vector_reserve(list, room, *count, 1, rank * sizeof **list) < 0)
        return cow_error(COW_MEMORY, "no memory for a selection of %zu elements", *count + 1);
    memcpy(*list + (*count)++ * rank, place, rank * sizeof *place);
    return 0;
}

static int note_chunk(const hsize_t *offset, unsigned mask, haddr_t address, hsize_t size, void *context)
{
    finding *f = context;

    (void)mask;
    (void)address;
    (void)size;
    return append(&f->chunks, &f->n, &f->room, f->rank, offset);
}

/* The dataset in memory, with zeros where DXPL selects. */
static int show(finding *f, hid_t *file, hid_t dxpl, uint64_t elements)
{
    char name[64];
    const unsigned char one = 1;
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), dcpl = H5Pcreate(H5P_DATASET_CREATE), own = H5I_INVALID_HID,
          space = H5Screate_simple((int)f->rank, f->extent, NULL);
    void *zeros = mmap(NULL, elements, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int status = -1;

    snprintf(name, sizeof name, "h5cow-listed-%ld-%p", (long)getpid(), (void *)f);
    if (zeros == MAP_FAILED) {
        cow_error(COW_MEMORY, "no address space for a selection in an extent of %llu elements",
                  (unsigned long long)elements);
        goto done;
    }
    /* a data transform or another property of the list would be applied to the zeros: none changes them into ones, for the
     * first thing that is done is to convert bytes into the same bytes */
    if (fapl < 0 || dcpl < 0 || space < 0 || H5Pset_vol(fapl, cow_native_id(), NULL) < 0 ||
        H5Pset_fapl_core(fapl, FILE_INCREMENT, false) < 0 || H5Pset_chunk(dcpl, (int)f->rank, f->chunk) < 0 ||
        H5Pset_fill_value(dcpl, H5T_NATIVE_UCHAR, &one) < 0 ||
        (*file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, fapl)) < 0 ||
        (f->dataset = H5Dcreate2(*file, "d", H5T_NATIVE_UCHAR, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)) < 0 ||
        (own = H5Pcopy(dxpl)) < 0 || H5Dwrite(f->dataset, H5T_NATIVE_UCHAR, H5S_BLOCK, H5S_PLIST, own, zeros) < 0 ||
        H5Dchunk_iter(f->dataset, H5P_DEFAULT, note_chunk, f) < 0)
        cow_error_native("cannot use the selection of the transfer property list");
    else
        status = 0;
done:
    if (zeros != MAP_FAILED)
        munmap(zeros, elements);
    cow_close(own, space, dcpl, fapl);
    return status;
}

static int read_points(finding *f)
{
    unsigned char *bytes = malloc(CHUNK_ELEMENTS);
    hsize_t at[COW_MAX_RANK];
    uint32_t mask;
    int status = bytes == NULL ? cow_error(COW_MEMORY, "no memory for a selection") : 0;

    for (size_t i = 0; status == 0 && i < f->n; i++) {
        const hsize_t *start = f->chunks + i * f->rank;
        uint64_t size = 1;

        for (unsigned d = 0; d < f->rank; d++)
            size *= f->chunk[d];
        if (cow_library_read_chunk(f->dataset, start, &mask, bytes, size) < 0)
            status = cow_error_native("cannot look at the selection of the transfer property list");
        for (uint64_t place = 0; status == 0 && place < size; place++) {
            uint64_t rest = place;

            for (unsigned d = f->rank; d-- > 0; rest /= f->chunk[d])
                at[d] = start[d] + rest % f->chunk[d];
            if (bytes[place] == 0)
                status = append(&f->points, &f->count, &f->points_room, f->rank, at);
        }
    }
    free(bytes);
    return status;
}

hid_t cow_selection_from_plist(unsigned rank, const uint64_t extent[], const char *label, hid_t dxpl)
{
    finding f = {.rank = rank, .dataset = H5I_INVALID_HID};
    hid_t file = H5I_INVALID_HID, space = H5I_INVALID_HID;
    uint64_t elements = 1, room = CHUNK_ELEMENTS;
    void *there = NULL;

    for (unsigned d = f.rank; d-- > 0;) {
        f.extent[d] = extent[d];
        elements = cow_times(elements, extent[d]);
        f.chunk[d] = extent[d] < room ? extent[d] : room;
        f.chunk[d] = f.chunk[d] > 0 ? f.chunk[d] : 1;
        room /= f.chunk[d];
        room = room > 0 ? room : 1;
    }
    if (H5Pget(dxpl, "dset_io_selection", &there) < 0 || there == NULL) {
        cow_error(COW_USAGE, "%s: there is no selection in the transfer property list", label);
        return H5I_INVALID_HID;
    }
    if (elements == 0 || elements > MOST_ELEMENTS) {
        cow_error(COW_UNSUPPORTED,
                  "%s: a selection in the transfer property list cannot be used in this extent; select in "
                  "the file dataspace instead",
                  label);
        return H5I_INVALID_HID;
    }
    if (cow_native_enter() < 0)
        return H5I_INVALID_HID;
    if (show(&f, &file, dxpl, elements) == 0 && read_points(&f) == 0) {
        if (f.count > 0)
            qsort_r(f.points, f.count, f.rank * sizeof *f.points, cow_row_major, &f.rank);
        space = H5Screate_simple((int)f.rank, f.extent, NULL);
        if (space < 0 ||
            (f.count > 0 ? H5Sselect_elements(space, H5S_SELECT_SET, f.count, f.points) : H5Sselect_none(space)) < 0) {
            cow_error_native("%s: cannot select elements", label);
            cow_close(space);
            space = H5I_INVALID_HID;
        }
    }
    cow_close(f.dataset, file);
    cow_native_leave();
    free(f.chunks);
    free(f.points);
    return space;
}
