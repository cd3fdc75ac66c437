/* H5Dvlen_get_buf_size of an array: the memory that elements of variable length take. Contract: array.h. */
#include "io/array.h"

#include "base/error.h"
#include "io/content.h"
#include "io/serial.h"

#include <stdlib.h>

#define DXPL H5P_DATASET_XFER_DEFAULT

void *cow_program_memory(size_t size)
{
    return malloc(size);
}

/* Read it all and look. A transfer list of our own, whose memory manager counts, is not to be had: the native connector
 * leaves the list that it was given in the library's context of the application's call, which outlives the list and
 * has read what it needs of the former one. */
int cow_array_memory_size(cow_array *array, hid_t mem_type, hid_t file_space, hsize_t *bytes)
{
    hssize_t points = H5Sget_select_npoints(file_space);
    hsize_t count = points < 0 ? 0 : (hsize_t)points;
    size_t size = H5Tget_size(mem_type);
    cow_serial *serial = NULL;
    hid_t space = H5I_INVALID_HID;
    void *data = NULL;
    int status = -1;

    if (points < 0 || size == 0 || (space = H5Screate_simple(1, &count, NULL)) < 0) {
        cow_error_native("%s: cannot prepare to read", array->label);
        goto done;
    }
    if (count > SIZE_MAX / size || (data = calloc(count + 1, size)) == NULL) {
        cow_error(COW_MEMORY, "%s: no memory to read %llu elements", array->label, (unsigned long long)count);
        goto done;
    }
    if ((serial = cow_serial_open(mem_type, "")) == NULL)
        goto done;
    if (count > 0 && cow_array_read(array, mem_type, space, file_space, DXPL, data) < 0)
        goto done;
    *bytes = cow_serial_memory(serial, data, size, count);
    status = 0;
done:
    cow_serial_close(serial);
    if (data != NULL)
        H5Treclaim(mem_type, space, DXPL, data);
    free(data);
    if (space >= 0)
        H5Sclose(space);
    return status;
}
