/* The options string: what it means, what is refused and with which words, and that it survives a round trip. */
#include "base/error.h"
#include "base/options.h"
#include "harness.h"
#include "random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cow_options *good(const char *text)
{
    cow_options *options = cow_options_parse(text);
    if (!options)
        fail_msg("'%s' was refused: %s", text, cow_error_message());
    return options;
}

/* TEXT is refused with a message that has WORD in it. */
static void bad(const char *text, const char *word)
{
    cow_options *options = cow_options_parse(text);
    if (options)
        fail_msg("'%s' was accepted", text);
    if (!strstr(cow_error_message(), word))
        fail_msg("'%s': no '%s' in '%s'", text, word, cow_error_message());
    cow_error_clear();
}

static void same_string(const char *a, const char *b)
{
    assert_int_equal(a == NULL, b == NULL);
    if (a)
        assert_string_equal(a, b);
}

static void same(const cow_options *a, const cow_options *b)
{
    same_string(a->at, b->at);
    same_string(a->name, b->name);
    same_string(a->message, b->message);
    assert_int_equal(a->commit, b->commit);
    assert_int_equal(a->compress.library, b->compress.library);
    assert_int_equal(a->compress.codec, b->compress.codec);
    assert_int_equal(a->compress.level, b->compress.level);
    assert_int_equal(a->compress.shuffle, b->compress.shuffle);
    assert_int_equal(a->chunk_bytes, b->chunk_bytes);
    assert_int_equal(a->cache_bytes, b->cache_bytes);
    assert_int_equal(a->memory_bytes, b->memory_bytes);
    assert_int_equal(a->threads, b->threads);
    assert_int_equal(a->adopt, b->adopt);
    assert_int_equal(a->protect, b->protect);
    assert_int_equal(a->truncate, b->truncate);
    assert_true((a->keep.text == NULL) == (b->keep.text == NULL));
    if (a->keep.text != NULL)
        assert_string_equal(a->keep.text, b->keep.text);
}

static void test_nothing_said_means_defaults(void **state)
{
    static const char *const texts[] = {
        NULL, "", " ", ";", " ; ;", "under_vol=0;under_info={}", "under_vol=0;under_info={};"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        cow_options *o = good(texts[i]);
        assert_null(o->at);
        assert_null(o->name);
        assert_null(o->message);
        assert_int_equal(o->commit, COW_COMMIT_CLOSE);
        assert_int_equal(o->compress.library, COW_COMPRESS_NONE);
        assert_int_equal(o->chunk_bytes, 256 * 1024);
        assert_int_equal(o->cache_bytes, 32 * 1024 * 1024);
        assert_int_equal(o->memory_bytes, 64 * 1024 * 1024);
        assert_true(o->threads >= 1 && o->threads <= 8);
        cow_options_free(o);
    }
}

static void test_every_key_is_understood(void **state)
{
    cow_options *o =
        good("name=run-7; message = first try, dt=0.1 ;commit=close;chunk=1M;cache=0;threads=3;compress=lzf");

    (void)state;
    assert_string_equal(o->name, "run-7");
    assert_string_equal(o->message, "first try, dt=0.1");
    assert_int_equal(o->commit, COW_COMMIT_CLOSE);
    assert_int_equal(o->chunk_bytes, 1 << 20);
    assert_int_equal(o->cache_bytes, 0);
    assert_int_equal(o->threads, 3);
    assert_int_equal(o->compress.library, COW_COMPRESS_LZF);
    cow_options_free(o);
    o = good("at={2026-01-31T12:00};commit=flush;threads=64;chunk=4096;cache=1024G;memory=1k");
    assert_string_equal(o->at, "{2026-01-31T12:00}");
    assert_int_equal(o->commit, COW_COMMIT_FLUSH);
    assert_int_equal(o->chunk_bytes, 4096);
    assert_true(o->cache_bytes == (size_t)1024 << 30);
    assert_int_equal(o->memory_bytes, 1024);
    cow_options_free(o);
    o = good("at=~2;chunk=1g");
    assert_string_equal(o->at, "~2");
    assert_int_equal(o->chunk_bytes, 1 << 30);
    cow_options_free(o);
}

static void test_compressors_are_understood(void **state)
{
    static const struct {
        const char *text;
        cow_compress want;
    } cases[] = {
        {"compress=none", {.library = COW_COMPRESS_NONE}},
        {"compress=blosc:blosclz", {COW_COMPRESS_BLOSC, 0, 5, 1}},
        {"compress=blosc:lz4:9", {COW_COMPRESS_BLOSC, 1, 9, 1}},
        {"compress=blosc:lz4hc:0:none", {COW_COMPRESS_BLOSC, 2, 0, 0}},
        {"compress=blosc:zlib:1:byte", {COW_COMPRESS_BLOSC, 4, 1, 1}},
        {"compress=blosc:zstd:3:bit", {COW_COMPRESS_BLOSC, 5, 3, 2}},
        {"compress=gzip", {COW_COMPRESS_GZIP, 0, 4, 1}},
        {"compress=gzip:9:none", {COW_COMPRESS_GZIP, 0, 9, 0}},
        {"compress=lzf", {COW_COMPRESS_LZF, 0, 0, 1}},
        {"compress=lzf:none", {COW_COMPRESS_LZF, 0, 0, 0}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cow_options *o = good(cases[i].text);
        assert_int_equal(o->compress.library, cases[i].want.library);
        assert_int_equal(o->compress.codec, cases[i].want.codec);
        assert_int_equal(o->compress.level, cases[i].want.level);
        assert_int_equal(o->compress.shuffle, cases[i].want.shuffle);
        cow_options_free(o);
    }
}

static void test_refusals_name_the_key_and_what_is_allowed(void **state)
{
    static const char *const refused[][2] = {
        {"colour=red", "'colour' is unknown: there are at, name"},
        {"=3", "is unknown"},
        {"name", "name has no value"},
        {"name=a;name=a", "given twice"},
        {"name=", "option name="},
        {"name=a/b", "'/'"},
        {"name=.", "option name"},
        {"name=~1", "option name"},
        {"name={x}", "option name"},
        {"name=a@b", "option name"},
        {"name=a%0Ab", "control"},
        {"name=01234567890123456789012345678901234567890123456789012345678901234", "1 to 64"},
        {"at=", "~N"},
        {"commit=always", "close or flush"},
        {"adopt=1", "yes or no"},
        {"protect=yes", "on or off"},
        {"truncate=", "keep or discard"},
        {"keep=", "does not say what is kept"},
        {"keep=last:0", "from 1"},
        {"keep=last:3,last:4", "said twice"},
        {"keep=first:3", "keep"},
        {"chunk=4095", "4K to 1G"},
        {"chunk=2G", "4K to 1G"},
        {"chunk=1T", "4K to 1G"},
        {"chunk=1MB", "4K to 1G"},
        {"chunk=-1", "4K to 1G"},
        {"chunk=99999999999999999999999999", "4K to 1G"},
        {"chunk=18446744073709551615K", "4K to 1G"},
        {"cache=1025G", "1024G"},
        {"cache=", "1024G"},
        {"memory=1023", "1K to 1024G"},
        {"memory=1025G", "1024G"},
        {"threads=0", "1 to 64"},
        {"threads=65", "1 to 64"},
        {"threads=2.5", "1 to 64"},
        {"compress=", "blosc:CODEC"},
        {"compress=bzip2", "blosc:CODEC"},
        {"compress=blosc", "blosclz, lz4"},
        {"compress=blosc:snappy", "blosclz, lz4"},
        {"compress=blosc:zstd:10", "LEVEL 0 to 9"},
        {"compress=blosc:zstd:", "LEVEL 0 to 9"},
        {"compress=blosc:zstd:5:word", "SHUFFLE"},
        {"compress=blosc:zstd:5:bit:x", "SHUFFLE"},
        {"compress=gzip:4:bit", "with blosc bit"},
        {"compress=lzf:4", "lzf[:SHUFFLE]"},
        {"compress=none:1", "none"},
        {"message=50% done", "%25"},
        {"message=x%0", "%25"},
        {"message=x%00", "%25"},
        {"at=3;name=x", "at and name"},
        {"message=x;at=3", "at and message"},
        {"name=x;commit=flush", "commit=flush"},
        {"under_vol=1;under_info={}", "native connector only"},
        {"under_vol=0;under_info={under_vol=0}", "native connector only"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        bad(refused[i][0], refused[i][1]);
}

static void test_values_may_hold_anything_when_encoded(void **state)
{
    cow_options *o = good("message=%20a%3Bb = 100%25%0Aname=x\xc3\xa9%20;commit=flush");

    (void)state;
    assert_string_equal(o->message, " a;b = 100%\nname=x\xc3\xa9 ");
    assert_null(o->name);
    assert_int_equal(o->commit, COW_COMMIT_FLUSH);
    cow_options_free(o);
}

static void test_text_parses_to_the_same_options(void **state)
{
    static const char *const texts[] = {
        "",
        "at=~2",
        "name=a b;message=%20;compress=blosc:zstd:3:bit",
        "message=%3B%25%09%0A x %20;commit=flush;compress=lzf:none;chunk=4K;cache=1G;memory=3M;threads=64",
        "message=;compress=gzip:9",
        "compress=blosc:lz4hc:0:none",
        "adopt=yes;truncate=discard",
        "protect=on",
        "keep=last:20,daily:7+within:2y5m;threads=2",
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        cow_options *o = good(texts[i]), *copy = cow_options_copy(o), *again;
        char *text = cow_options_text(o);
        assert_non_null(copy);
        assert_non_null(text);
        assert_null(strpbrk(text, "\n\r\t"));
        again = good(text);
        same(o, copy);
        same(o, again);
        cow_options_free(again);
        cow_options_free(copy);
        cow_options_free(o);
        free(text);
    }
}

static void test_a_refused_text_stands_for_itself(void **state)
{
    static const char *const texts[] = {"colour=red", "threads=0;chunk=1M", "message=50% done", "at"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        cow_options *refused, *copy;
        char *text, why[1024];

        assert_null(cow_options_parse(texts[i]));
        snprintf(why, sizeof why, "%s", cow_error_message());
        refused = cow_options_refuse(texts[i]);
        assert_non_null(refused);
        assert_false(cow_error_pending());
        copy = cow_options_copy(refused);
        cow_options_free(refused);
        assert_string_equal(copy->refused, texts[i]);
        assert_string_equal(copy->refusal, why);
        text = cow_options_text(copy);
        assert_string_equal(text, texts[i]);
        bad(text, why);
        free(text);
        cow_options_free(copy);
    }
}

static void test_random_text_is_refused_or_survives_a_round_trip(void **state)
{
    static const char *const words[] = {"at",      "name",  "message",   "commit", "compress", "chunk", "cache",
                                        "threads", "=",     ";",         ":",      "%",        "%3B",   "blosc",
                                        "zstd",    "gzip",  "lzf",       "1",      "64K",      "9",     " ",
                                        "flush",   "close", "none",      "byte",   "bit",      "{",     "}",
                                        "~",       "\xff",  "under_vol", "0",      "x",        "/",     "memory"};
    unsigned accepted = 0, seed = test_seed();

    (void)state;
    for (int round = 0; round < 20000; round++) {
        char text[200] = "";
        for (int n = (int)(seed = seed * 1103515245 + 12345) >> 16 & 7; n >= 0; n--) {
            seed = seed * 1103515245 + 12345;
            strcat(text, words[(seed >> 16) % (sizeof words / sizeof *words)]);
            if (n % 2)
                strcat(text, "=");
        }
        cow_options *o = cow_options_parse(text), *again;
        if (!o) {
            assert_true(cow_error_pending());
            cow_error_clear();
            continue;
        }
        char *out = cow_options_text(o);
        again = good(out);
        same(o, again);
        accepted++;
        free(out);
        cow_options_free(o);
        cow_options_free(again);
    }
    assert_true(accepted > 10);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_said_means_defaults),
        cmocka_unit_test(test_every_key_is_understood),
        cmocka_unit_test(test_compressors_are_understood),
        cmocka_unit_test(test_refusals_name_the_key_and_what_is_allowed),
        cmocka_unit_test(test_values_may_hold_anything_when_encoded),
        cmocka_unit_test(test_text_parses_to_the_same_options),
        cmocka_unit_test(test_a_refused_text_stands_for_itself),
        cmocka_unit_test(test_random_text_is_refused_or_survives_a_round_trip),
    };
    return test_main(tests, argc, argv, NULL, NULL);
}
