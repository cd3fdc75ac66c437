/* Object headers from the bytes of a file: see header.h. */
#include "h5/header.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/vector.h"
#include "h5/checksum.h"

#include <stdlib.h>
#include <string.h>

#define PHASE 0x10

#define MOST_OUTER 1024 /* chunks */

const uint8_t cow_links_without_heap[COW_LINKS_WITHOUT_HEAP] = {0,   0,   255, 255, 255, 255, 255, 255, 255,
                                                                255, 255, 255, 255, 255, 255, 255, 255, 255};

int cow_source_bring(const cow_source *source, uint64_t address, void *bytes, size_t size)
{
    if (address > source->end || size > source->end - address)
        return 0;
    return source->read(source->context, address, bytes, size) < 0 ? -1 : 1;
}

bool cow_source_good(const cow_source *source, const uint8_t *bytes, size_t size, uint32_t sum)
{
    return source->unchecked || cow_metadata_checksum(bytes, size) == sum;
}

uint64_t cow_get_bytes(const uint8_t *p, unsigned n)
{
    uint64_t v = 0;

    while (n-- > 0)
        v = v << 8 | p[n];
    return v;
}

bool cow_header_signature(const uint8_t *bytes)
{
    return memcmp(bytes, "OHDR", 4) == 0;
}

bool cow_header_parse(const uint8_t *bytes, size_t size, cow_header *header)
{
    uint64_t content;

    *header = (cow_header){0};
    if (size < 6 || !cow_header_signature(bytes) || bytes[4] != 2 || bytes[5] & 0xc0)
        return false;
    header->ordered = bytes[5] & COW_HEADER_ORDERED;
    header->prefix = 6 + (bytes[5] & COW_HEADER_TIMES ? 16 : 0) + (bytes[5] & PHASE ? 4 : 0);
    header->width = (size_t)1 << (bytes[5] & 3);
    if (size < header->prefix + header->width)
        return false;
    memcpy(header->start, bytes, header->prefix);
    content = cow_get_bytes(bytes + header->prefix, (unsigned)header->width);
    header->first = header->prefix + header->width + (size_t)content + 4;
    return content <= COW_HEADER_MOST;
}

const uint8_t *cow_header_search(const uint8_t *p, size_t size, size_t most, size_t *all)
{
    const uint8_t *const end = p + size;
    cow_header header;

    for (; p < end && (p = memmem(p, (size_t)(end - p) + 3, "OHDR", 4)) != NULL; p++)
        if (cow_header_parse(p, most, &header) && header.first <= most && cow_metadata_whole(p, header.first)) {
            *all = header.first;
            return p;
        }
    return NULL;
}

int cow_header_begin(const cow_source *source, uint64_t address, cow_header *header)
{
    uint8_t bytes[34];
    int status;

    *header = (cow_header){0};
    if ((status = cow_source_bring(source, address, bytes, sizeof bytes)) <= 0)
        return status;
    if (!cow_header_parse(bytes, sizeof bytes, header))
        return 0;
    header->address = address;
    return 1;
}

int cow_messages_each(const uint8_t *p, size_t size, bool ordered, cow_message_visitor *visit, void *context)
{
    const size_t prefix = ordered ? 6 : 4;
    int status = 1;

    for (size_t at = 0, length; status == 1 && size - at >= prefix; at += prefix + length) {
        length = cow_get16(p + at + 1);
        if (length > size - at - prefix)
            return 0;
        status = visit(context, p + at, prefix, length);
    }
    return status;
}

typedef struct visiting {
    cow_header *header;
    cow_message_visitor *visitor;
    void *context;
} visiting;

/* Continuations are noted. */
static int pass_on(void *context, const uint8_t *message, size_t prefix, size_t length)
{
    const visiting *v = context;
    cow_header *header = v->header;
    const uint8_t *body = message + prefix;

    if (message[0] > COW_MESSAGE_LAST && message[3] & COW_MESSAGE_MUST_BE_KNOWN)
        return 0;
    if (message[0] == COW_MESSAGE_NIL)
        return 1;
    if (message[0] != COW_MESSAGE_CONTINUATION)
        return v->visitor(v->context, message, prefix, length);
    if (message[3] & COW_MESSAGE_SHARED || length < 16 || header->outers > MOST_OUTER ||
        COW_RESERVE(header->outer, header->outer_room, header->outers, 1) < 0)
        return 0;
    header->outer[header->outers++] = (cow_place){cow_get64(body), cow_get64(body + 8)};
    return 1;
}

/* SIZE bytes at ADDRESS, of which the last four are the checksum of the others. The messages are behind SKIP. */
static int take_chunk(const cow_source *source, visiting *v, uint64_t address, size_t size, size_t skip,
                      const char *magic)
{
    uint8_t some[512], *bytes = size <= sizeof some ? some : malloc(size);
    int status;

    if (bytes == NULL)
        return 0;
    v->header->visited = (cow_header_chunk){address, bytes, size};
    if ((status = cow_source_bring(source, address, bytes, size)) > 0)
        status = memcmp(bytes, magic, 4) == 0 && cow_source_good(source, bytes, size - 4, cow_get32(bytes + size - 4))
                     ? cow_messages_each(bytes + skip, size - skip - 4, v->header->ordered, pass_on, v)
                     : 0;
    if (bytes != some)
        free(bytes);
    return status;
}

int cow_header_messages(const cow_source *source, cow_header *header, cow_message_visitor *visitor, void *context)
{
    visiting v = {header, visitor, context};
    int status = take_chunk(source, &v, header->address, header->first, header->prefix + header->width, "OHDR");

    for (size_t i = 0; status == 1 && i < header->outers; i++) {
        const cow_place outer = header->outer[i];

        if (outer.size < 8 || outer.size > COW_HEADER_MOST)
            return 0;
        status = take_chunk(source, &v, outer.address, (size_t)outer.size, 4, "OCHK");
    }
    return status;
}

void cow_header_free(cow_header *header)
{
    free(header->outer);
    header->outer = NULL;
}

int cow_header_visit(const cow_source *source, uint64_t address, cow_header *header, cow_message_visitor *visitor,
                     void *context)
{
    int status = cow_header_begin(source, address, header);

    if (status > 0)
        status = cow_header_messages(source, header, visitor, context);
    cow_header_free(header);
    return status;
}

typedef struct writing {
    const cow_header *header;
    cow_header_writer *write;
    void *context;
} writing;

#define WRITTEN 2 /* what ends the visit */

/* From AT on, with the checksum. */
static int write_from(const writing *w, size_t at)
{
    const cow_header_chunk *c = &w->header->visited;

    cow_metadata_sum_up(c->bytes, c->size);
    return w->write(w->context, c->address + at, c->bytes + at, c->size - at);
}

/* The SIZE bytes at AT of the chunk that is visited, which are FORMER, were changed. What cannot be written as a whole, for want of memory, becomes again
 * what it was: that takes none. */
static int write_chunk(const writing *w, size_t at, const void *former, size_t size)
{
    cow_error_held *held;

    if (write_from(w, at) == 0)
        return WRITTEN;
    held = cow_error_hold();
    memcpy(w->header->visited.bytes + at, former, size);
    if (write_from(w, at) < 0)
        cow_error_clear();
    cow_error_put_back(held);
    return -1;
}

/* VISIT writes what it changes. HEADER: of its context. */
static int rewrite(const cow_source *source, uint64_t address, cow_header *header, cow_message_visitor *visit,
                   void *context)
{
    const int status = cow_header_visit(source, address, header, visit, context);

    return status == WRITTEN ? 1 : status < 0 ? -1 : 0;
}

/* Is the message of an extent its own, of version 2, of a simple one of one dimension or more that can grow? */
static bool can_grow(const uint8_t *message, const uint8_t *body, size_t length)
{
    return (message[3] & COW_MESSAGE_SHARED) == 0 && length >= 4 && body[0] == 2 && body[1] >= 1 &&
           length >= 4 + 16 * (size_t)body[1] && body[2] == 1 && body[3] == 1;
}

typedef struct reshaping {
    writing writing;
    unsigned rank; /* 0: any, and only its first dimension changes */
    const uint64_t *former, *extent;
    uint32_t now; /* 0: the times stay */
} reshaping;

/* Where the times of access and of change are, in the first chunk of a header that has times. */
#define ACCESSED_AT 6
#define CHANGED_AT  14

static int set_extent(void *context, const uint8_t *message, size_t prefix, size_t length)
{
    const reshaping *r = context;
    const cow_header *header = r->writing.header;
    const cow_header_chunk *c = &header->visited;
    const uint8_t *body = message + prefix;
    const unsigned changed = r->rank > 0 ? r->rank : 1;
    const size_t at = (size_t)(body + 4 - c->bytes), end = at + 8 * (size_t)changed;
    const bool timed = r->now > 0 && header->start[5] & COW_HEADER_TIMES;
    size_t begin = at;
    uint8_t *former;
    int status;

    if (message[0] != COW_MESSAGE_SPACE)
        return 1;
    if (!can_grow(message, body, length) || (r->rank > 0 && body[1] != r->rank) ||
        (r->former != NULL && cow_get64(body + 4) != *r->former) || (timed && c->address != header->address))
        return 0;
    for (unsigned d = 0; d < changed; d++)
        if (r->extent[d] > cow_get64(body + 4 + 8 * ((size_t)body[1] + d)))
            return 0;
    if (timed)
        begin = ACCESSED_AT;
    if ((former = malloc(end - begin)) == NULL)
        return 0;
    memcpy(former, c->bytes + begin, end - begin);
    if (timed) {
        cow_put32(c->bytes + ACCESSED_AT, r->now);
        cow_put32(c->bytes + CHANGED_AT, r->now);
    }
    for (unsigned d = 0; d < changed; d++)
        cow_put64(c->bytes + at + 8 * (size_t)d, r->extent[d]);
    status = write_chunk(&r->writing, begin, former, end - begin);
    free(former);
    return status;
}

int cow_header_resize(const cow_source *source, uint64_t address, uint64_t former, uint64_t extent,
                      cow_header_writer *write, void *context)
{
    cow_header header;
    reshaping r = {{&header, write, context}, 0, &former, &extent, 0};

    return rewrite(source, address, &header, set_extent, &r);
}

int cow_header_set_extent(const cow_source *source, uint64_t address, unsigned rank, const uint64_t extent[],
                          uint32_t now, cow_header_writer *write, void *context)
{
    cow_header header;
    reshaping r = {{&header, write, context}, rank, NULL, extent, now};

    return rewrite(source, address, &header, set_extent, &r);
}

typedef struct counting {
    writing writing;
    int more;
} counting;

/* In the message of a count, version 0. */
static int set_count(void *context, const uint8_t *message, size_t prefix, size_t length)
{
    const counting *w = context;
    const cow_header_chunk *c = &w->writing.header->visited;
    const uint8_t *body = message + prefix;
    const size_t at = (size_t)(body + 1 - c->bytes);
    uint8_t former[4];
    uint32_t count;

    if (message[0] != COW_MESSAGE_REFERENCES)
        return 1;
    if (message[3] & COW_MESSAGE_SHARED || length < 5 || body[0] != 0 || (count = cow_get32(body + 1)) < 2 ||
        count >= INT32_MAX || (int)count + w->more < 2)
        return 0;
    cow_put32(former, count);
    cow_put32(c->bytes + at, (uint32_t)((int)count + w->more));
    return write_chunk(&w->writing, at, former, sizeof former);
}

int cow_header_count_links(const cow_source *source, uint64_t address, int more, cow_header_writer *write,
                           void *context)
{
    cow_header header;
    counting w = {{&header, write, context}, more};

    return rewrite(source, address, &header, set_count, &w);
}

int cow_header_set_times(const cow_source *source, uint64_t address, const uint32_t times[4], cow_header_writer *write,
                         void *context)
{
    uint8_t *bytes;
    cow_header header;
    int status = cow_header_begin(source, address, &header);

    if (status <= 0 || !(header.start[5] & COW_HEADER_TIMES))
        return status < 0 ? -1 : 0;
    if ((bytes = malloc(header.first)) == NULL)
        return -1;
    if ((status = cow_source_bring(source, address, bytes, header.first)) > 0 &&
        (status = cow_source_good(source, bytes, header.first - 4, cow_get32(bytes + header.first - 4))) > 0) {
        for (int i = 0; i < 4; i++)
            cow_put32(bytes + ACCESSED_AT + 4 * i, times[i]);
        cow_metadata_sum_up(bytes, header.first);
        status = write(context, address, bytes, header.first) < 0 ? -1 : 1;
    }
    free(bytes);
    return status;
}

bool cow_link_parse(const uint8_t *p, size_t size, cow_link_parts *parts)
{
    size_t next = 2;
    unsigned kind = 0, width;
    uint64_t length;

    if (size < 4 || p[0] != 1 || p[1] & 0xe0)
        return false;
    width = 1u << (p[1] & 3);
    if (p[1] & 8)
        kind = p[next++];
    next += (p[1] & 4 ? 8 : 0) + (p[1] & 16 ? 1 : 0);
    if (next > size || width > size - next)
        return false;
    length = cow_get_bytes(p + next, width);
    next += width;
    if (length == 0 || length > size - next)
        return false;
    *parts = (cow_link_parts){.name = next, .length = (size_t)length};
    next += (size_t)length;
    if (kind == 0) {
        parts->address = next;
        return size - next >= 8;
    }
    if (kind == 1) {
        if (size - next < 3)
            return false;
        parts->target = next + 2;
    }
    return true;
}
