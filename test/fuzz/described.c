/* A dataset's object header, the mappings it names or the index of its chunks, or a group's links: an image of a file, and where the header
 * is in it. */
#include "fuzz.h"
#include "image.h"

#include "base/bytes.h"
#include "base/error.h"
#include "h5/attribute.h"
#include "h5/chunk_index.h"
#include "h5/dataset_header.h"
#include "h5/links.h"
#include "h5/small_group.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define MOST 128 /* bytes of a header that is searched for */

/* What follows a change up to the checksum, within the image. */
static int write_header(void *context, uint64_t address, const void *bytes, size_t size)
{
    const cow_source *source = context;

    (void)bytes;
    if (address > source->end || size > source->end - address || size < 8)
        abort();
    return 0;
}

/* The first byte: are checksums compared, is it a group, are the chunks filtered, and do objects get or lose a link? */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    image i;
    cow_source source;
    const char *const names[] = {"index", "7"};
    char file[64], name[64];
    uint64_t address[2], mappings, value;
    const uint8_t *found;
    size_t all;
    cow_dataset_header d;
    cow_chunk_index *index = NULL;
    cow_chunk_place place;
    cow_small_group group;

    if (size < IMAGE_PREFIX)
        return 0;
    source = image_source(&i, data, size);
    if (cow_header_count_links(&source, cow_get16(data + 1), data[0] & 16 ? 1 : -1, write_header, &source) < 0)
        abort();
    if (cow_header_set_extent(&source, cow_get16(data + 1), 1 + data[0] % 4, (uint64_t[]){3, 2, 1, 0}, 1, write_header,
                              &source) < 0)
        abort();
    if (cow_header_set_times(&source, cow_get16(data + 1), (uint32_t[]){1, 2, 3, 4}, write_header, &source) < 0 ||
        cow_attribute_number(&source, cow_get16(data + 1), "format", 4, &value) < 0)
        abort();
    if (i.size > MOST && (found = cow_header_search(i.bytes, i.size - MOST, MOST, &all)) != NULL)
        assert(all <= MOST && found < i.bytes + i.size - MOST);
    if (data[0] & 2) {
        cow_links_find(&source, cow_get16(data + 1), true, 2, names, address);
        cow_links_lack(&source, cow_get16(data + 1), "7");
        if (cow_small_group_read(&source, cow_get16(data + 1), &group) > 0)
            assert(group.count <= COW_HEADER_LINKS);
        cow_small_group_free(&group);
    } else if (cow_dataset_header_read(&source, cow_get16(data + 1), &d) > 0) {
        assert(d.rank <= COW_DATASET_HEADER_RANK && d.type_size <= COW_DATASET_HEADER_TYPE);
        if (d.rank == 1 &&
            cow_header_resize(&source, cow_get16(data + 1), d.extent[0], d.extent[0] + 1, write_header, &source) < 0)
            abort();
        if (d.layout == COW_DATASET_HEADER_VIRTUAL &&
            cow_dataset_header_source(&source, &d, sizeof file, file, name, &mappings) > 0)
            assert(strlen(file) < sizeof file && strlen(name) < sizeof name);
        if (d.layout == COW_DATASET_HEADER_CHUNKED &&
            cow_chunk_index_open(&source, d.index, data[0] & 4, data[0] & 8, &index) > 0)
            for (unsigned bit = 0; bit < 64; bit++)
                if (cow_chunk_index_find(index, ((uint64_t)1 << bit) + bit, &place) < 0)
                    abort();
        cow_chunk_index_close(index);
    }
    cow_error_clear();
    return 0;
}

size_t fuzz_first_input(unsigned n, uint8_t *to, size_t room)
{
    static const uint8_t header[] = {0, 0, 0, 'O', 'H', 'D', 'R', 2, 0, 22, 8, 18, 0, 0, 4, 3};

    (void)room;
    return first_image(n, to, header);
}
