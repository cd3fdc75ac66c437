/* Text that came out of a file, or from a user, on its way to a terminal, a page or JSON. Contract: common.h.
 *
 * A terminal obeys control characters. Format characters of Unicode (bidirectional overrides above all, and what has no width) make it show
 * another text than there is, so that a name can look like another name. Both are shown as escapes.
 */
#include "common.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the UTF-8 character at P (0: not one), and which it is. Overlong forms and surrogates are refused. */
static size_t character_at(const unsigned char *p, uint32_t *code)
{
    size_t n = p[0] < 0x80                   ? 1
               : p[0] >= 0xc2 && p[0] < 0xe0 ? 2
               : (p[0] & 0xf0) == 0xe0       ? 3
               : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
                                             : 0;

    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) ||
        (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    *code = n == 1 ? p[0] : p[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++)
        *code = *code << 6 | (p[i] & 0x3f);
    return n;
}

/* Categories Cc, Cf, Zl and Zp of Unicode 15, and letters that look like nothing. */
static bool is_unseen(uint32_t code)
{
    static const uint32_t ranges[][2] = {
        {0x0000, 0x001f},   {0x007f, 0x009f},   {0x00ad, 0x00ad},   {0x0600, 0x0605},   {0x061c, 0x061c},
        {0x06dd, 0x06dd},   {0x070f, 0x070f},   {0x0890, 0x0891},   {0x08e2, 0x08e2},   {0x115f, 0x1160},
        {0x180e, 0x180e},   {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},   {0x3164, 0x3164},
        {0xfeff, 0xfeff},   {0xffa0, 0xffa0},   {0xfff9, 0xfffb},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd},
        {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe007f},
    };

    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (code >= ranges[i][0] && code <= ranges[i][1])
            return true;
    return false;
}

char *cli_clean(char *text)
{
    uint32_t code;

    for (unsigned char *p = (unsigned char *)text; *p != '\0';) {
        size_t n = character_at(p, &code);

        if (n == 0)
            *p = '?';
        p += n == 0 ? 1 : n;
    }
    return text;
}

char *cli_escape(const char *text)
{
    static const char letters[] = "abtnvfr";
    char *escaped = cli_alloc(4 * strlen(text) + 1, 1), *to = escaped;
    uint32_t code;

    for (const unsigned char *p = (const unsigned char *)text; *p != '\0';) {
        const size_t n = character_at(p, &code);

        if (n == 0)
            *to++ = '?';
        else if (!is_unseen(code))
            to = (char *)memcpy(to, p, n) + n;
        else if (code >= 7 && code <= 13)
            to += sprintf(to, "\\%c", letters[code - 7]);
        else
            to += sprintf(to, n == 1 ? "\\x%02x" : n < 4 ? "\\u%04x" : "\\U%08x", (unsigned)code);
        p += n == 0 ? 1 : n;
    }
    return escaped;
}

char *cli_visible(char *text)
{
    char *escaped;

    for (char *p = text; *p != '\0'; p++)
        if (*p == '\n' || *p == '\t' || *p == '\r')
            *p = ' ';
    escaped = cli_escape(text);
    free(text);
    return escaped;
}

/* ---- JSON ---- */

json_object *cli_json_text(const char *text)
{
    char *copy = cli_clean(cli_strdup(text == NULL ? "" : text));
    json_object *value = json_object_new_string(copy);

    free(copy);
    return value;
}

void cli_json_for_terminal(json_object *value)
{
    if (json_object_is_type(value, json_type_string)) {
        char *copy = cli_visible(cli_strdup(json_object_get_string(value)));
        json_object_set_string(value, copy);
        free(copy);
    } else if (json_object_is_type(value, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(value); i++)
            cli_json_for_terminal(json_object_array_get_idx(value, i));
    } else if (json_object_is_type(value, json_type_object)) {
        json_object_object_foreach(value, key, member)
        {
            (void)key;
            cli_json_for_terminal(member);
        }
    }
}

void cli_json_put(const char *text)
{
    uint32_t code;
    size_t n;

    for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p += n) {
        if ((n = character_at(p, &code)) == 0 || *p < 0x7f || !is_unseen(code))
            fwrite(p, 1, n = n == 0 ? 1 : n, stdout);
        else if (code > 0xffff)
            printf("\\u%04x\\u%04x", 0xd800 + ((code - 0x10000) >> 10), 0xdc00 + (code & 0x3ff));
        else
            printf("\\u%04x", (unsigned)code);
    }
    putchar('\n');
}
