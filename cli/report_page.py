#!/usr/bin/env python3
"""report.html as two texts in C, before and after the place of what the page is given.

usage: report_page.py REPORT.html > report_page.c
"""

import json
import sys

PLACE = "@REPORT@"


def text(name, lines):
    return f"const char {name}[] =\n" + "\n".join(f"    {json.dumps(line)}" for line in lines) + ";\n"


def main():
    page = open(sys.argv[1], encoding="ascii").read()
    begin, end = page.split(PLACE)
    print("/* Made of report.html by report_page.py. */\n#include \"report.h\"\n")
    print(text("cli_report_page_begin", begin.splitlines(keepends=True)))
    print(text("cli_report_page_end", end.splitlines(keepends=True)))


if __name__ == "__main__":
    main()
