/* Help as man pages: see manual.h. The language is that of man(7). */
#include "manual.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static void put_text(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (i == 0 && (text[i] == '.' || text[i] == '\''))
            fputs("\\&", stdout);
        if (text[i] == '\\')
            fputs("\\e", stdout);
        else if (text[i] == '-' || text[i] == '~' || text[i] == '^')
            printf("%s", text[i] == '-' ? "\\-" : text[i] == '~' ? "\\(ti" : "\\(ha");
        else
            putchar(text[i]);
    }
}

static void put_line(const char *text, size_t length)
{
    put_text(text, length);
    putchar('\n');
}

size_t cli_manual_words(const char *option, size_t length)
{
    for (size_t i = 0; i + 1 < length; i++)
        if (option[i] == ' ' && option[i + 1] == ' ')
            return i;
    return length;
}

/* A line of a help text under the headings of a man page. *SECTION: the one that is open. */
static void put_help_line(const char *line, size_t length, const char **section)
{
    size_t blanks = strspn(line, " "), words;
    const char *wanted = strncmp(line, "Example: ", 9) == 0               ? "EXAMPLE"
                         : strncmp(line, "Exit code", 9) == 0             ? "EXIT STATUS"
                         : blanks > 0 && blanks < length                  ? "OPTIONS"
                         : strcmp(*section, "OPTIONS") == 0 && length > 0 ? "NOTES"
                                                                          : *section;

    if (strcmp(wanted, *section) != 0)
        printf(".SH %s\n", wanted);
    else if (length == 0 && line[1] != '\0' && line[1] != ' ' && strncmp(line + 1, "Ex", 2) != 0)
        puts(".PP");
    *section = wanted;
    if (blanks > 0 && blanks < length && line[blanks] == '-') {
        words = cli_manual_words(line + blanks, length - blanks);
        printf(".TP\n.B ");
        put_line(line + blanks, words);
        blanks += words;
        while (blanks < length && line[blanks] == ' ')
            blanks++;
    } else if (strcmp(wanted, "EXAMPLE") == 0 && blanks == 0)
        blanks = strlen("Example: ");
    if (blanks < length)
        put_line(line + blanks, length - blanks);
}

/* "Usage: ..." is the synopsis, the rest goes under its headings. */
static void put_help(const char *help)
{
    const char *line = help + strlen("Usage: "), *section = "DESCRIPTION";
    size_t length = strcspn(line, "\n");

    puts(".SH SYNOPSIS");
    put_line(line, length);
    puts(".SH DESCRIPTION");
    for (line += length + 2; *line != '\0'; line += length + (line[length] == '\n')) {
        length = strcspn(line, "\n");
        if (length > 0 || line[1] != '\0')
            put_help_line(line, length, &section);
    }
}

static void put_title(const char *name, const char *what)
{
    char upper[64];
    size_t i = 0;

    for (; name[i] != '\0' && i + 1 < sizeof upper; i++)
        upper[i] = (char)toupper((unsigned char)name[i]);
    upper[i] = '\0';
    printf(".TH %s 1 \"\" \"h5cow " H5COW_VERSION "\" \"h5cow\"\n.SH NAME\n", upper);
    put_text(name, strlen(name));
    printf(" \\- ");
    put_line(what, strlen(what));
}

void cli_manual_page(const cli_page *page)
{
    char name[64];

    snprintf(name, sizeof name, "h5cow-%s", page->name);
    put_title(name, page->what);
    put_help(page->help);
    puts(".SH SEE ALSO\n.BR h5cow (1);\ncommand.md and options.md in the folder doc/h5cow of this installation");
}

void cli_manual_whole(const char *about, const cli_page *pages, size_t count)
{
    put_title("h5cow", "version history for HDF5 files");
    put_help(about);
    puts(".SH VERBS");
    for (size_t i = 0; i < count; i++) {
        printf(".TP\n.BR h5cow\\-%s (1)\n", pages[i].name);
        put_line(pages[i].what, strlen(pages[i].what));
    }
    puts(
        ".SH ENVIRONMENT\n"
        ".TP\n.B HDF5_VOL_CONNECTOR\n"
        "\"h5cow\", or \"h5cow KEY=VALUE;KEY=VALUE\": programs that start with it use h5cow.\n"
        ".TP\n.B HDF5_PLUGIN_PATH\n"
        "Folders where HDF5 looks for the plugin libh5cow.so; h5cow doctor says where it is.\n"
        ".PP\n.BR \"h5cow run\" \" sets both.\"\n"
        ".SH FILES\n"
        ".TP\n.B .h5cow\\-XXXXXX.tmp\n"
        "a file that a verb was writing in this folder when it was killed: it can be removed.\n"
        ".TP\n.B NAME.h5cow\\-old\\-N\n"
        "a file with its history, kept when a program created NAME anew in another form.\n"
        ".SH SEE ALSO\nThe folder doc/h5cow of this installation: README.md, docs/command.md, docs/options.md, docs/python.md");
}
