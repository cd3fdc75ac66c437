/* Object headers from the bytes of a file, for files of which HDF5 has nothing in memory that the file has not. The layouts are those of the
 * HDF5 File Format Specification, IV.A, of the versions that HDF5 1.10 to 2.2 writes where the format of 1.10 is allowed. */
#ifndef COW_HEADER_H
#define COW_HEADER_H

#include "h5/place.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a file at addresses below END. READ: 0, or -1 recorded. UNCHECKED: for a fuzz target, whose checksums are not right. */
typedef struct cow_source {
    void *context;
    uint64_t end;
    int (*read)(void *context, uint64_t address, void *bytes, size_t size);
    bool unchecked;
} cow_source;

/* 1; 0: there are no such bytes; -1: recorded. */
int cow_source_bring(const cow_source *source, uint64_t address, void *bytes, size_t size);
/* Is SUM that of BYTES, as HDF5 computes it for metadata? */
bool cow_source_good(const cow_source *source, const uint8_t *bytes, size_t size, uint32_t sum);

enum { /* types of messages */
       COW_MESSAGE_NIL = 0x00,
       COW_MESSAGE_SPACE = 0x01,
       COW_MESSAGE_LINK_INFO = 0x02,
       COW_MESSAGE_TYPE = 0x03,
       COW_MESSAGE_FILL = 0x05,
       COW_MESSAGE_LINK = 0x06,
       COW_MESSAGE_LAYOUT = 0x08,
       COW_MESSAGE_GROUP_INFO = 0x0a,
       COW_MESSAGE_FILTERS = 0x0b,
       COW_MESSAGE_ATTRIBUTE = 0x0c,
       COW_MESSAGE_COMMENT = 0x0d,
       COW_MESSAGE_SHARED_TABLE = 0x0f,
       COW_MESSAGE_CONTINUATION = 0x10,
       COW_MESSAGE_ATTRIBUTE_INFO = 0x15,
       COW_MESSAGE_REFERENCES = 0x16,
};
#define COW_MESSAGE_LAST          0x18 /* that HDF5 knows */
#define COW_MESSAGE_SHARED        0x02 /* of the flags: its content is elsewhere; */
#define COW_MESSAGE_MUST_BE_KNOWN 0x80 /* who does not know the type cannot open the object */

#define COW_HEADER_ORDERED 0x04 /* of the flags, byte 5: messages have numbers; */
#define COW_HEADER_TIMES   0x20 /* it has times */
/* A chunk of it: all its bytes, the last four of which are the checksum of the others. */
typedef struct cow_header_chunk {
    uint64_t address;
    uint8_t *bytes;
    size_t size;
} cow_header_chunk;
/* The first bytes of an object header of version 2, before the size of its first chunk. */
typedef struct cow_header {
    uint8_t start[26];
    size_t prefix; /* of them */
    size_t width;  /* bytes of the size behind them */
    bool ordered;  /* COW_HEADER_ORDERED */
    uint64_t address;
    size_t first;     /* bytes of its first chunk, start and checksum included */
    cow_place *outer; /* further chunks */
    size_t outers, outer_room;
    cow_header_chunk visited; /* while a visitor is called */
} cow_header;
#define COW_HEADER_MOST ((size_t)64 << 20) /* bytes of a chunk */

bool cow_header_signature(const uint8_t *bytes);
/* The header that begins with these SIZE bytes, its address apart. false: they are too few, or of none of version 2. The checksum is not looked at. */
bool cow_header_parse(const uint8_t *bytes, size_t size, cow_header *header);
/* The first header that begins in the SIZE bytes at P, behind which MOST more can be looked at: with a first chunk of no more than that, which is whole. *ALL: its
 * bytes. NULL: there is none. */
const uint8_t *cow_header_search(const uint8_t *p, size_t size, size_t most, size_t *all);

/* A message: its PREFIX, which begins with type, two bytes of the length, and flags, and behind that LENGTH bytes; until the visitor
 * returns. 1 goes on. */
typedef int cow_message_visitor(void *context, const uint8_t *message, size_t prefix, size_t length);
/* All messages in SIZE bytes of a chunk, whatever they are: too few for one more are left over at its end. 1; 0: the last one is longer than the chunk; what else
 * the visitor returned. */
int cow_messages_each(const uint8_t *p, size_t size, bool ordered, cow_message_visitor *visit, void *context);

/* Each 1; 0: it is not as HDF5 writes it, or of another version, or there is no memory; -1: recorded. A header is begun, then its messages are visited, but for
 * those that only say where others are, then it is freed. What else the visitor returns ends the visit, and is returned. */
int cow_header_begin(const cow_source *source, uint64_t address, cow_header *header);
int cow_header_messages(const cow_source *source, cow_header *header, cow_message_visitor *visit, void *context);
void cow_header_free(cow_header *header);
/* All three; what the start of HEADER says stays. */
int cow_header_visit(const cow_source *source, uint64_t address, cow_header *header, cow_message_visitor *visit,
                     void *context);

/* The extent of a dataset in its first dimension becomes EXTENT, where it is FORMER. WRITE is as READ of a source. 1; 0 and -1 as above. */
typedef int cow_header_writer(void *context, uint64_t address, const void *bytes, size_t size);
int cow_header_resize(const cow_source *source, uint64_t address, uint64_t former, uint64_t extent,
                      cow_header_writer *write, void *context);

/* The extent of a dataset of RANK dimensions becomes EXTENT, and its times, where the header has any, NOW (seconds since 1970), as HDF5 does it: H5D__mark,
 * H5O_touch_oh. HDF5 must have nothing of it in memory. As above. */
int cow_header_set_extent(const cow_source *source, uint64_t address, unsigned rank, const uint64_t extent[],
                          uint32_t now, cow_header_writer *write, void *context);

/* The object has MORE links (1, or -1) than before, and counts several then and now: HDF5 keeps the count in its header. HDF5 must have nothing of it in
 * memory. As above. */
int cow_header_count_links(const cow_source *source, uint64_t address, int more, cow_header_writer *write,
                           void *context);

/* The times of an object that has any become those of access, modification, change and birth, in seconds since 1970. 1; 0: it has none, or this is not known here;
 * -1: a function of SOURCE or WRITE failed, or there is no memory. */
int cow_header_set_times(const cow_source *source, uint64_t address, const uint32_t times[4], cow_header_writer *write,
                         void *context);

/* The message about the links of a group that keeps no order and has all of them in its header. */
#define COW_LINKS_WITHOUT_HEAP 18
extern const uint8_t cow_links_without_heap[COW_LINKS_WITHOUT_HEAP];

/* A link's message. ADDRESS 0: it is no hard one. false: it is not as it should be. */
typedef struct cow_link_parts {
    size_t name, length; /* where in the message the name is */
    size_t address;      /* and the address */
    size_t target;       /* of a soft link */
} cow_link_parts;
bool cow_link_parse(const uint8_t *message, size_t size, cow_link_parts *parts);

/* N bytes, at most 8, as a number. */
uint64_t cow_get_bytes(const uint8_t *p, unsigned n);

static inline bool cow_is_power(uint64_t v)
{
    return v > 0 && (v & (v - 1)) == 0;
}
static inline unsigned cow_log2(uint64_t v)
{
    return 63 - (unsigned)__builtin_clzll(v | 1);
}

#endif
