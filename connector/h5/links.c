/* See links.h. */
#include "h5/links.h"

#include "base/bytes.h"
#include "base/error.h"
#include "h5/dense.h"

typedef struct wanted {
    size_t n;
    const char *const *names;
    uint64_t *addresses;
    bool met; /* one of them, of whatever class */
    bool heap;
} wanted;

static int look(void *context, const uint8_t *message, size_t prefix, size_t length)
{
    wanted *w = context;
    const uint8_t *body = message + prefix;
    cow_link_parts parts;

    if (message[0] == COW_MESSAGE_LINK_INFO) {
        const size_t at = length < 2 || !(body[1] & 1) ? 2 : 10;

        if (length < at + 16 || body[0] != 0)
            return 0;
        w->heap = cow_get64(body + at) != UINT64_MAX;
    } else if (message[0] == COW_MESSAGE_LINK) {
        if (message[3] & COW_MESSAGE_SHARED || !cow_link_parse(body, length, &parts))
            return 0;
        for (size_t i = 0; i < w->n; i++) {
            if (strlen(w->names[i]) != parts.length || memcmp(body + parts.name, w->names[i], parts.length) != 0)
                continue;
            w->met = true;
            if (parts.address > 0)
                w->addresses[i] = cow_get64(body + parts.address);
        }
    }
    return 1;
}

int cow_links_find(const cow_source *source, uint64_t group, bool dense, size_t n, const char *const names[],
                   uint64_t addresses[])
{
    wanted w = {.n = n, .names = names, .addresses = addresses};
    cow_header header;
    cow_dense *heap;
    int status;

    memset(addresses, 0xff, n * sizeof *addresses);
    if ((status = cow_header_visit(source, group, &header, look, &w)) <= 0 || !w.heap)
        return status;
    if (!dense || (status = cow_dense_parse(source, group, &heap)) <= 0)
        return dense ? status : 0;
    for (size_t i = 0; i < n; i++)
        if (!cow_dense_find(heap, names[i], &addresses[i]))
            addresses[i] = UINT64_MAX;
    cow_dense_free(heap);
    return 1;
}

bool cow_links_lack(const cow_source *source, uint64_t group, const char *name)
{
    uint64_t address;
    wanted w = {.n = 1,
                .names = &name,
                .addresses = &address,
                .heap = true}; /* who says nothing of its links may have others */
    cow_header header;
    const int status = cow_header_visit(source, group, &header, look, &w);

    if (status < 0)
        cow_error_clear();
    return status > 0 && !w.heap && !w.met;
}
