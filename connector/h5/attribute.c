/* See attribute.h. The message is of version 3: behind its flags the sizes of name, type and space, and which characters the name has. */
#include "h5/attribute.h"

#include "base/bytes.h"
#include "h5/new_header.h"

#include <string.h>

#define HEAD  9 /* bytes before the name */
#define TYPE  12
#define SPACE 4

/* What stands behind the name of one of SIZE bytes: type and space. */
static void shape(uint8_t p[TYPE + SPACE], unsigned size)
{
    memset(p, 0, TYPE + SPACE);
    p[0] = 0x10; /* an integer, in version 1 of types */
    cow_put32(p + 4, size);
    cow_put16(p + 10, (uint16_t)(8 * size));
    p[TYPE] = 2; /* a scalar one, in version 2 of spaces */
}

typedef struct number {
    const char *name;
    unsigned size;
    uint64_t value;
    bool found;
} number;

static int look(void *context, const uint8_t *message, size_t prefix, size_t length)
{
    number *n = context;
    const size_t name = strlen(n->name) + 1, all = HEAD + name + TYPE + SPACE + n->size;
    const uint8_t *body = message + prefix, *p = body + HEAD;
    uint8_t behind[TYPE + SPACE];

    shape(behind, n->size);
    if (message[0] != COW_MESSAGE_ATTRIBUTE || message[3] & COW_MESSAGE_SHARED || length < all || body[0] != 3 ||
        body[1] != 0 || cow_get16(body + 2) != name || cow_get16(body + 4) != TYPE || cow_get16(body + 6) != SPACE ||
        memcmp(p, n->name, name) != 0 || memcmp(p + name, behind, sizeof behind) != 0)
        return 1;
    n->value = cow_get_bytes(body + all - n->size, n->size);
    n->found = true;
    return 1;
}

int cow_attribute_number(const cow_source *source, uint64_t address, const char *name, unsigned size, uint64_t *value)
{
    number n = {.name = name, .size = size};
    cow_header header;
    const int status = cow_header_visit(source, address, &header, look, &n);

    if (status > 0 && n.found)
        *value = n.value;
    return status > 0 ? n.found : status;
}

uint8_t *cow_new_number(uint8_t *p, const char *name, unsigned size, uint64_t value)
{
    const size_t length = strlen(name) + 1;
    uint8_t *body = cow_new_prefix(p, COW_MESSAGE_ATTRIBUTE, 0, HEAD + length + TYPE + SPACE + size, false);

    memset(body, 0, HEAD);
    body[0] = 3;
    cow_put16(body + 2, (uint16_t)length);
    cow_put16(body + 4, TYPE);
    cow_put16(body + 6, SPACE);
    memcpy(body + HEAD, name, length);
    shape(body + HEAD + length, size);
    body += HEAD + length + TYPE + SPACE;
    for (unsigned i = 0; i < size; i++)
        *body++ = (uint8_t)(value >> 8 * i);
    return body;
}
