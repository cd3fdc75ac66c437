/* The application's memory in selection order, packed and unpacked part by part. Contract: transfer.h. */
#include "io/transfer.h"

#include "base/error.h"

#include <string.h>

int cow_stream_open(cow_stream *stream, const cow_transfer *transfer)
{
    stream->memory = transfer->buf;
    stream->element = transfer->mem_size;
    stream->at = transfer->mem_offset;
    stream->runs = NULL;
    stream->n = stream->next = 0;
    return transfer->contiguous || (stream->runs = cow_runs_open(transfer->mem_space)) != NULL ? 0 : -1;
}

void cow_stream_close(cow_stream *stream)
{
    cow_runs_close(stream->runs);
    stream->runs = NULL;
}

/* The next part, at most N elements: its length (0: none left), or -1; *AT its address. */
static int next_part(cow_stream *stream, uint64_t n, uint8_t **at, uint64_t *length)
{
    cow_run *run;

    if (stream->runs == NULL) {
        *at = stream->memory + stream->at * stream->element;
        *length = n;
        stream->at += n;
        return 0;
    }
    if (stream->next == stream->n) {
        if (cow_runs_next(stream->runs, stream->run, sizeof stream->run / sizeof *stream->run, SIZE_MAX / 2,
                          &stream->n) < 0)
            return -1;
        stream->next = 0;
        if (stream->n == 0)
            return cow_error(COW_USAGE, "the memory selection ends before the file selection");
    }
    run = &stream->run[stream->next];
    *at = stream->memory + run->offset * stream->element;
    *length = run->length < n ? run->length : n;
    run->offset += *length;
    run->length -= *length;
    if (run->length == 0)
        stream->next++;
    return 0;
}

int cow_stream_gather(cow_stream *stream, uint64_t n, uint8_t *packed)
{
    uint64_t length = 0;
    uint8_t *at = NULL;

    for (; n > 0; n -= length, packed += length * stream->element) {
        if (next_part(stream, n, &at, &length) < 0)
            return -1;
        memcpy(packed, at, length * stream->element);
    }
    return 0;
}

int cow_stream_scatter(cow_stream *stream, uint64_t n, const uint8_t *packed)
{
    uint64_t length = 0;
    uint8_t *at = NULL;

    for (; n > 0; n -= length, packed += length * stream->element) {
        if (next_part(stream, n, &at, &length) < 0)
            return -1;
        memcpy(at, packed, length * stream->element);
    }
    return 0;
}
