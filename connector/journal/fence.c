/* The fence header. Contract: fence.h. */
#include "journal/fence.h"

#include "h5/checksum.h"
#include "h5/header.h"
#include "h5/new_header.h"

#include <string.h>

#define FENCE_TYPE  0x77
#define FENCE_FLAGS 0x08 /* fail if unknown and open for write */
#define START       8    /* bytes of a fence before its messages */
#define SOURCE_MOST ((size_t)1 << 20)

static const char fence_text[24] = "h5cow: open with h5cow";

size_t cow_fence_source_size(const uint8_t *bytes, size_t size)
{
    cow_header header;

    return cow_header_parse(bytes, size, &header) && header.first <= SOURCE_MOST ? header.first : 0;
}

/* What is left over at the end of a chunk is no message. */
static int add_length(void *context, const uint8_t *message, size_t prefix, size_t length)
{
    (void)message;
    *(size_t *)context += prefix + length;
    return 1;
}

size_t cow_fence_make(uint8_t *to, size_t room, const uint8_t *extension)
{
    const uint8_t *messages = NULL;
    size_t length = 0, start, message, all;
    cow_header from = {0};

    if (extension != NULL) {
        if (!cow_header_parse(extension, 32, &from) || from.first > SOURCE_MOST ||
            !cow_metadata_whole(extension, from.first))
            return 0;
        start = from.prefix + from.width;
        messages = extension + start;
        if (cow_messages_each(messages, from.first - start - 4, from.ordered, add_length, &length) == 0)
            return 0;
    }
    message = (from.ordered ? 6 : 4) + sizeof fence_text;
    all = START + length + message + 4;
    if (all > room || length + message > UINT16_MAX)
        return 0;
    start = cow_new_start(to, (uint8_t)(from.ordered ? 1 | COW_HEADER_ORDERED : 1), 0, length + message);
    if (length > 0)
        memcpy(to + start, messages, length);
    memcpy(cow_new_prefix(to + start + length, FENCE_TYPE, FENCE_FLAGS, sizeof fence_text, from.ordered), fence_text,
           sizeof fence_text);
    cow_metadata_sum_up(to, all);
    return all;
}

bool cow_fence_is(const uint8_t *bytes, size_t size)
{
    return size > 4 && cow_header_signature(bytes) && memmem(bytes, size, fence_text, strlen(fence_text)) != NULL;
}
