"""docs/tutorial.md: its programs and commands are run, and must answer what the page says.

`./dev exec env H5COW_WRITE_TUTORIAL=1 python3 -m pytest test/test_tutorial.py` writes the answers into the page; what it then
says is read by people before it is committed.
"""

import os
import pwd
import re
import subprocess

from conftest import H5COW, PLUGINS, STOCK, TEST

PAGE = TEST.parent / "docs/tutorial.md"
SAME = [  # what is another one at each run, on either side
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", "TIME"),
    (r"\d+(\.\d+)? (B|[KMG]iB|s|times)\b", "SOME"),
    (r"\S*python3\S*", "python3"),
    (r" +", " "),
]


def as_anna(text):
    """Whoever runs the test, wherever."""
    for name, instead in ((pwd.getpwuid(os.getuid()).pw_name, "anna"), (os.uname().nodename, "lab")):
        text = re.sub(rf"(?<![\w/]){re.escape(name)}(?![\w/])", instead, text)
    return text


def masked(text):
    for pattern, instead in SAME:
        text = re.sub(pattern, instead, text)
    return [line.strip() for line in text.splitlines()]


def blocks(page):
    """(kind, name of the file or None, lines)"""
    for found in re.finditer(r"^```(\w+)\n(.*?)^```$", page, re.M | re.S):
        before = page[: found.start()].rstrip().splitlines()
        name = next((re.search(r"this as `(\S+)`", line) for line in reversed(before[-3:]) if "this as `" in line), None)
        yield found, name and name[1]


def test_every_command_answers_what_the_page_says(tmp_path):
    page = PAGE.read_text()
    env = {**STOCK, "HDF5_PLUGIN_PATH": PLUGINS, "PATH": f"{os.path.dirname(H5COW)}:{os.environ['PATH']}", "TZ": "CET-1"}
    commands, made, last = 0, "", 0
    for found, name in blocks(page):
        made += page[last : found.start()]
        last = found.end()
        if found[1] == "python":
            (tmp_path / name).write_text(found[2])
            made += found[0]
            continue
        parts, told = re.split(r"^\$ (.*)\n", found[2], flags=re.M)[1:], ""
        for command, expected in zip(parts[::2], parts[1::2]):
            done = subprocess.run(["sh", "-c", command], cwd=tmp_path, env=env, capture_output=True, text=True)
            answer = as_anna(done.stdout + done.stderr)
            told += f"$ {command}\n{answer}"
            commands += 1
            if "H5COW_WRITE_TUTORIAL" not in os.environ:
                assert masked(answer) == masked(expected), command
        made += f"```console\n{told}```"
    assert commands == page.count("\n$ ") > 15
    if "H5COW_WRITE_TUTORIAL" in os.environ:
        PAGE.write_text(made + page[last:])
