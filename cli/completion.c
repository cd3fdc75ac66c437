/* Completion of verbs and options for shells: see manual.h. One walk over the options of a help text; each shell has its
 * own way to write them down, and tells what it can of what they mean. What is no option is a version or a path in a file, which
 * the command is asked for (candidates.c), else a file name, or behind `run` a command. */
#include "manual.h"

#include <stdio.h>
#include <string.h>

/* One name of an option, "--message" of "  -m, --message=TEXT    recorded in ...". */
typedef struct cli_option {
    const char *verb, *name, *text;
    const char *value; /* what stands behind "=" in one of its names, or NULL */
    int name_length, value_length, text_length;
} cli_option;

typedef void option_writer(const cli_option *option);

/* The first line of what is said about an option: behind its words, or below them. */
static void find_text(const char *words, size_t length, const char *line_end, cli_option *option)
{
    const char *text = words + length + strspn(words + length, " ");

    if (*text == '\n' && strncmp(text + 1, "       ", 7) == 0) {
        text += 1 + strspn(text + 1, " ");
        line_end = text + strcspn(text, "\n");
    }
    option->text = text;
    option->text_length = text < line_end ? (int)(line_end - text) : 0;
}

static void each_option(const cli_page *page, option_writer *write)
{
    for (const char *line = page->help; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *words = line + strspn(line, " "), *end = line + strcspn(line, "\n"), *value;
        if (words == line || *words != '-')
            continue;
        cli_option option = {.verb = page->name};
        size_t length = cli_manual_words(words, (size_t)(end - words));
        find_text(words, length, end, &option);
        value = memchr(words, '=', length);
        if (value != NULL) {
            option.value = value + 1;
            option.value_length = (int)(words + length - option.value);
        }
        for (const char *name = words; name < words + length; name += strspn(name, ", ")) {
            option.name = name;
            option.name_length = (int)strcspn(name, "=, \n");
            write(&option);
            name += strcspn(name, ", \n");
        }
    }
}

static bool is_long(const cli_option *option)
{
    return strncmp(option->name, "--", 2) == 0;
}

/* Between single quotes, which end in TEXT as the shell has it: '\'' for zsh, \' for fish. Characters of SPECIAL get a
 * backslash. */
static void put_quoted(const char *text, int length, const char *quote, const char *special)
{
    for (int i = 0; i < length; i++)
        if (text[i] == '\'')
            fputs(quote, stdout);
        else
            printf("%s%c", strchr(special, text[i]) != NULL ? "\\" : "", text[i]);
}

/* The cases of a `case` on the verb, as bash and zsh have it: each sets `options`, between OPEN and CLOSE. */
static void put_cases(const cli_page *pages, size_t count, const char *open, const char *close, option_writer *write)
{
    for (size_t i = 0; i < count; i++) {
        printf("    %s) options=%s", pages[i].name, open);
        each_option(&pages[i], write);
        printf("%s ;;\n", close);
    }
}

/* A line for each verb, ended by a quote: BEFORE, its name, BETWEEN, and what it does, quoted as in put_quoted. */
static void put_verbs(const cli_page *pages, size_t count, const char *before, const char *between, const char *quote)
{
    for (size_t i = 0; i < count; i++) {
        printf("%s%s%s", before, pages[i].name, between);
        put_quoted(pages[i].what, (int)strlen(pages[i].what), quote, "\\");
        puts("'");
    }
}

/* ---- bash ---- */

static void put_bash_option(const cli_option *option)
{
    printf(" %.*s%s", option->name_length, option->name, option->value != NULL && is_long(option) ? "=" : "");
}

static void put_bash(const cli_page *pages, size_t count)
{
    puts("# bash completion of h5cow; made from what 'h5cow VERB --help' prints\n"
         "_h5cow()\n{\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} verbs= options= i\n"
         "    COMPREPLY=()");
    printf("    verbs='help");
    for (size_t i = 0; i < count; i++)
        printf(" %s", pages[i].name);
    puts("'\n"
         "    if ((COMP_CWORD == 1)); then\n"
         "        COMPREPLY=($(compgen -W \"$verbs --help --version\" -- \"$word\"))\n"
         "        return\n"
         "    fi\n"
         "    case ${COMP_WORDS[1]} in\n"
         "    help) COMPREPLY=($(compgen -W \"$verbs\" -- \"$word\")); return ;;");
    put_cases(pages, count, "'", "'", put_bash_option);
    puts(
        "    esac\n"
        "    if [[ ${COMP_WORDS[1]} == run ]]; then # the command that shall run, and its words\n"
        "        for ((i = 2; i < COMP_CWORD; i++)); do\n"
        "            [[ ${COMP_WORDS[i]} == -- ]] || continue\n"
        "            declare -F _command_offset >/dev/null && _command_offset $((i + 1))\n"
        "            return\n"
        "        done\n"
        "    fi\n"
        "    if [[ $word == -* ]]; then\n"
        "        COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
        "        [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace\n"
        "        return\n"
        "    fi\n"
        "    # bash cuts words at '@', ':' and '=': they are joined again, and of the answer only what stands for $2 is given back\n"
        "    local words=() line=${COMP_LINE:0:COMP_POINT} part\n"
        "    read -ra words <<<\"$line\"\n"
        "    [[ $line != *[[:space:]] ]] || words+=('')\n"
        "    part=${words[-1]-}\n"
        "    mapfile -t COMPREPLY < <(\"${words[0]}\" help --candidates \"${words[@]:1}\" 2>/dev/null)\n"
        "    if ((${#COMPREPLY[@]} > 0)); then\n"
        "        part=${part%\"${2-}\"}\n"
        "        COMPREPLY=(\"${COMPREPLY[@]#\"$part\"}\")\n"
        "        ((${#COMPREPLY[@]} > 1)) || [[ ${COMPREPLY[0]} != */ ]] || compopt -o nospace\n"
        "    else\n"
        "        compopt -o default\n"
        "    fi\n"
        "}\n"
        "complete -F _h5cow h5cow");
}

/* ---- zsh ---- */

/* A word for _arguments: '*--message=[recorded in ...]:TEXT: '; the first character lets it be given more than once. */
static void put_zsh_option(const cli_option *option)
{
    printf("'*%.*s", option->name_length, option->name);
    if (option->value != NULL)
        putchar(is_long(option) ? '=' : '+');
    putchar('[');
    put_quoted(option->text, option->text_length, "'\\''", "[]\\");
    putchar(']');
    if (option->value != NULL) {
        putchar(':');
        put_quoted(option->value, option->value_length, "'\\''", ":\\");
        fputs(": ", stdout);
    }
    fputs("' ", stdout);
}

static void put_zsh(const cli_page *pages, size_t count)
{
    puts("#compdef h5cow\n"
         "# made from what 'h5cow VERB --help' prints\n"
         "_h5cow()\n{\n"
         "    local -a verbs options\n"
         "    verbs=('help:say how h5cow, or one of its verbs, is used'");
    put_verbs(pages, count, "        '", ":", "'\\''");
    puts("    )\n"
         "    if ((CURRENT == 2)); then\n"
         "        if [[ $PREFIX == -* ]]; then\n"
         "            compadd -- --help --version\n"
         "        else\n"
         "            _describe verb verbs\n"
         "        fi\n"
         "        return\n"
         "    fi\n"
         "    shift words\n"
         "    ((CURRENT--))\n"
         "    case ${words[1]} in\n"
         "    help) _describe verb verbs; return ;;");
    put_cases(pages, count, "(", ")", put_zsh_option);
    puts("    esac\n"
         "    if [[ ${words[1]} == run ]]; then\n"
         "        _arguments -S $options '(-):command: _command_names -e' '*::words: _normal'\n"
         "    else\n"
         "        _arguments -S $options '*:file:_h5cow_word'\n"
         "    fi\n"
         "}\n"
         "_h5cow_word() # a version, a path in a file, or a file\n{\n"
         "    local -a found ends\n"
         "    found=(${(f)\"$(h5cow help --candidates \"${(@Q)words[1,CURRENT]}\" 2>/dev/null)\"})\n"
         "    ends=(${(M)found:#*/})\n"
         "    found=(${found:#*/})\n"
         "    (($#found + $#ends)) || { _files; return }\n"
         "    compadd -a found\n"
         "    compadd -S '' -a ends\n"
         "}\n"
         "_h5cow \"$@\"");
}

/* ---- fish ---- */

static void put_fish_option(const cli_option *option)
{
    int dashes = is_long(option) ? 2 : 1;

    printf("complete -c h5cow -n '__fish_h5cow_verb %s' -%c %.*s%s", option->verb, dashes == 2 ? 'l' : 's',
           option->name_length - dashes, option->name + dashes, option->value != NULL ? " -x" : "");
    if (option->text_length > 0) {
        fputs(" -d '", stdout);
        put_quoted(option->text, option->text_length, "\\'", "\\");
        putchar('\'');
    }
    putchar('\n');
}

static void put_fish(const cli_page *pages, size_t count)
{
    puts("# fish completion of h5cow; made from what 'h5cow VERB --help' prints\n"
         "function __fish_h5cow_verb -d 'the verb is this one; without a word: there is none yet'\n"
         "    set -l words (commandline -opc)\n"
         "    test \"$words[2]\" = \"$argv[1]\"\n"
         "end\n"
         "function __fish_h5cow_command -d 'what completes the command that run shall run'\n"
         "    set -l words (commandline -opc)\n"
         "    if set -l at (contains -i -- -- $words)\n"
         "        complete -C (string join -- ' ' (string escape -- $words[(math $at + 1)..]) (commandline -ct))\n"
         "    else\n"
         "        __fish_complete_subcommand --fcs-skip=2\n"
         "    end\n"
         "end\n"
         "function __fish_h5cow_word -d 'versions, and paths in a file'\n"
         "    set -l words (commandline -opc)\n"
         "    h5cow help --candidates $words[2..] (commandline -ct) 2>/dev/null\n"
         "end\n"
         "complete -c h5cow -n 'not __fish_h5cow_verb' -a '(__fish_h5cow_word)'\n"
         "complete -c h5cow -n __fish_h5cow_verb -f\n"
         "complete -c h5cow -n __fish_h5cow_verb -l help\n"
         "complete -c h5cow -n __fish_h5cow_verb -l version");
    put_verbs(pages, count, "complete -c h5cow -n __fish_h5cow_verb -a ", " -d '", "\\'");
    fputs("complete -c h5cow -n __fish_h5cow_verb -a help -d 'say how h5cow, or one of its verbs, is used'\n"
          "complete -c h5cow -n '__fish_h5cow_verb help' -f -a '",
          stdout);
    for (size_t i = 0; i < count; i++)
        printf("%s%s", i == 0 ? "" : " ", pages[i].name);
    puts("'");
    for (size_t i = 0; i < count; i++)
        each_option(&pages[i], put_fish_option);
    puts("complete -c h5cow -n '__fish_h5cow_verb run' -x -a '(__fish_h5cow_command)'");
}

int cli_manual_completion(const char *shell, const cli_page *pages, size_t count)
{
    if (strcmp(shell, "bash") == 0)
        put_bash(pages, count);
    else if (strcmp(shell, "zsh") == 0)
        put_zsh(pages, count);
    else if (strcmp(shell, "fish") == 0)
        put_fish(pages, count);
    else
        return cli_fail("there is no completion for '%s', but for bash, zsh and fish", shell);
    return cli_flush();
}
