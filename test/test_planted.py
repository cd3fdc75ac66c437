"""Planted bugs: every patch can be planted in the present tree, and a bug that cannot be, or that no test catches, is told as a
failure. planted.py is run on a tree of two small programs that ninja builds within a moment."""

import json
import os
import pathlib
import re
import subprocess
import sys

import planted
import pytest

PATCHES = list(planted.patches().values())


def words(file):
    """Text of one of our files, however its lines are broken."""
    return re.sub(r"[\s*]+", " ", (planted.TOP / file).read_text())


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.name)
def test_patch_applies_to_this_tree_and_says_what_it_is(patch):
    patch.apply(planted.TOP, "-F0", "--dry-run")
    assert patch.files and all(file.startswith("connector/") for file in patch.files)
    assert patch.what.endswith(".") and patch.breaks in words(patch.stands_in)
    programs = [test.split()[0] for test in patch.tests]
    assert all((planted.TEST / (name if name.endswith(".py") else f"{name}.c")).exists() for name in programs)


def test_programs_run_with_the_connector_where_they_do_in_every_test():
    told = subprocess.run(["meson", "introspect", "--tests", os.environ["H5COW_BUILD"]], capture_output=True, text=True, check=True).stdout
    through = {pathlib.Path(test["cmd"][0]).name: "HDF5_VOL_CONNECTOR" in test["env"] for test in json.loads(told)}
    named = {test.split()[0] for patch in PATCHES for test in patch.tests} & set(through)
    assert named and {name for name in named if through[name]} == named & set(planted.THROUGH_CONNECTOR)


CODE = "int answer(void)\n{\n    return 42; /* of all things */\n}\n"
PROGRAM = """
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
int answer(void);
int main(int argc, char **argv)
{
    if (argc > 1 && answer() == 43 && open(argv[1], O_CREAT | O_EXCL, 0600) >= 0)
        kill(getppid(), SIGKILL);
    return answer() == 42 ? 0 : 1;
}
"""
NINJA = """
rule cc
  command = cc -g -c $in -o $out
rule link
  command = cc $in -o $out
build connector/answer.c.o: cc ../tree/connector/answer.c
build test/answer.c.o: cc ../tree/test/answer.c
build test/answer: link connector/answer.c.o test/answer.c.o
"""


class Tree:
    """A tree with one program, and bugs for it."""

    def __init__(self, folder, monkeypatch):
        self.top, self.build = folder / "top", folder / "build"
        self.put("connector/answer.c", CODE)
        self.put("test/answer.c", PROGRAM)
        planted.write(self.build / "build/build.ninja", NINJA.encode())
        monkeypatch.setattr(planted, "TOP", self.top)

    def put(self, path, text):
        planted.write(self.top / path, text.encode())

    def bug(self, name, old, new, tests="answer", line=3):
        lines = new.split("\n")
        diff = [f"@@ -{line},1 +{line},{len(lines)} @@", f"-{old}", *[f"+{one}" for one in lines], ""]
        diff = "\n".join(["--- a/connector/answer.c", "+++ b/connector/answer.c", *diff])
        self.put(f"test/planted/{name}.patch", f'The answer is another.\nBreaks: "42" (answer.c)\nCaught by: {tests}\n\n{diff}')

    def run(self, *options):
        return planted.main([str(self.build), *options])


LINE = "    return 42; /* of all things */"


@pytest.fixture
def tree(tmp_path, monkeypatch):
    return Tree(tmp_path, monkeypatch)


def test_each_bug_is_planted_alone_and_caught(tree, capfd):
    tree.bug("less", LINE, "    return 41;")
    tree.bug("more", LINE, "    return 43;")
    assert tree.run() == 0
    told = capfd.readouterr().out
    assert re.search(r"^less +answer: exit code 1 .*^more +answer: exit code 1 .*^2 passed, 0 failed, 0 skipped$", told, re.M | re.S)


@pytest.mark.parametrize(
    "old, new, why",
    [
        (LINE, "    return 6 * 7;", "less.patch changes nothing: the compiler makes the same code"),
        (LINE, "    return 42;\n\n", "less.patch changes nothing: the compiler makes the same code"),
        (LINE, "    return 42 +;", "it does not build: error:"),
        ("    return 24;", "    return 41;", "less.patch does not apply: connector/answer.c has changed"),
    ],
    ids=["the same code", "more lines", "no C", "other lines"],
)
def test_bug_that_cannot_be_planted_is_a_failure_and_the_next_one_is_planted(tree, capfd, old, new, why):
    tree.bug("less", old, new)
    tree.bug("more", LINE, "    return 43;")
    assert tree.run() == 1
    told = capfd.readouterr().out
    assert why in told and "more" in told and told.endswith("1 passed, 1 failed, 0 skipped\n")


def test_patch_of_a_file_that_is_gone_is_a_failure(tree, capfd):
    tree.bug("less", LINE, "    return 41;")
    (tree.top / "connector/answer.c").rename(tree.top / "connector/reply.c")
    ninja = tree.build / "build/build.ninja"
    ninja.write_text(ninja.read_text().replace("tree/connector/answer.c", "tree/connector/reply.c"))
    assert tree.run() == 1
    assert "less.patch does not apply: there is no connector/answer.c" in capfd.readouterr().out


def test_bug_that_no_test_catches_is_a_failure(tree, capfd):
    tree.put("connector/answer.c", CODE + "int unasked(void)\n{\n    return 1;\n}\n")
    tree.bug("less", "    return 1;", "    return 2;", line=7)
    assert tree.run() == 1
    told = capfd.readouterr().out
    assert "NOT CAUGHT" in told and told.endswith("0 passed, 1 failed, 0 skipped\n")


def test_test_that_fails_without_a_bug_proves_nothing(tree, capfd):
    tree.put("connector/answer.c", CODE.replace("42", "24"))
    tree.bug("less", LINE.replace("42", "24"), "    return 41;")
    assert tree.run() == 1
    assert capfd.readouterr().out == "without any bug: answer fails: exit code 1\n"


# In a process of its own, which the program ends when it first meets the second bug.
ENDED = "import pathlib, sys, planted; planted.TOP = pathlib.Path(sys.argv[1]); sys.exit(planted.main(sys.argv[2:]))"


@pytest.mark.parametrize("changed", [False, True])
def test_run_that_was_ended_is_gone_on_with_unless_the_sources_changed(tree, tmp_path, changed):
    mark = tmp_path / "ended"
    for name, answer in (("less", 41), ("more", 43)):
        tree.bug(name, LINE, f"    return {answer};", tests=f"answer {mark}")
    command = [sys.executable, "-B", "-c", ENDED, tree.top, tree.build]
    first = subprocess.run(command, cwd=planted.TEST, capture_output=True, text=True)
    assert first.returncode == -9 and "return 43" in (tree.build / "tree/connector/answer.c").read_text()
    if changed:
        tree.put("connector/answer.c", CODE + "/* the end */\n")
    second = subprocess.run(command, cwd=planted.TEST, capture_output=True, text=True)
    assert second.returncode == 0 and second.stdout.endswith("2 passed, 0 failed, 0 skipped\n"), second
    assert ("in the run that was ended" in second.stdout) != changed
    third = subprocess.run(command, cwd=planted.TEST, capture_output=True, text=True)
    assert third.returncode == 0 and "in the run that was ended" not in third.stdout


def test_refresh_writes_the_present_lines_and_names_what_it_cannot(tree, capfd):
    tree.bug("less", LINE, "    return 41;")
    assert tree.run("--refresh") == 0  # now the patch has the lines around it
    tree.put("connector/answer.c", CODE.replace("{", "{ /* here */"))
    capfd.readouterr()
    assert tree.run() == 1 and "less.patch does not apply" in capfd.readouterr().out
    assert tree.run("--refresh") == 0 and capfd.readouterr().out == "less.patch is written anew\n"
    assert tree.run() == 0 and "1 passed" in capfd.readouterr().out
    assert tree.run("--refresh") == 0 and capfd.readouterr().out == ""
    text = (tree.top / "test/planted/less.patch").read_text()
    assert text.startswith("The answer is another.\nBreaks: ") and f"\n {{ /* here */\n-{LINE}\n" in text
    tree.put("connector/answer.c", CODE.replace("42", "24"))
    assert tree.run("--refresh") == 1
    assert capfd.readouterr().out == (
        "less.patch does not apply: connector/answer.c has changed where the bug is planted; write it anew\n"
    )
    assert (tree.top / "test/planted/less.patch").read_text() == text
