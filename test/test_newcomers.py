"""What somebody meets who uses h5cow for the first time: what is said, where, and whether it is what is meant."""

import json
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys

import h5py
import pytest
from conftest import H5COW, STOCK as ENV, h5cow
from terminal import all_on_a_terminal
from waiting import WAITING

PROGRAM = """
import h5py, sys
for name in sys.argv[3:]:
    with h5py.File(name, sys.argv[1]) as f:
        if sys.argv[2] != 'look':
            f.require_dataset('x', (1000,), 'i4')[0] = int(sys.argv[2])
"""


def run(*words, env=ENV, **more):
    return subprocess.run([H5COW, "run", *map(str, words)], capture_output=True, text=True, env=env, **more)


def python(mode, value, *names):
    return ["--", sys.executable, "-c", PROGRAM, mode, value, *names]


def plain(path):
    with h5py.File(path, "w") as f:
        f["x"] = [0] * 1000
    os.utime(path, (1e9, 1e9))
    return path


def versions(path):
    return [v["name"] for v in reversed(json.loads(h5cow("log", "--json", path)))]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


# ---- run says what it did not record --------------------------------------------------------------------------------


def test_run_says_that_a_plain_file_was_written_and_how_it_gets_a_history(folder):
    plain("a.h5")
    done = run(*python("r+", 5, "a.h5"))
    assert done.returncode == 0 and len(done.stderr.splitlines()) == 1
    advice = re.search(r"h5cow import (\S+)$", done.stderr.strip())
    assert "'%s' has no history" % (folder / "a.h5") in done.stderr and advice
    h5cow("import", advice[1])
    done = run(*python("r+", 6, "a.h5"))
    assert (done.returncode, done.stderr) == (0, "") and versions("a.h5") == ["1", "2"]


def test_run_counts_plain_files_in_one_line(folder):
    for name in "abc":
        plain(name)
    os.mkdir("sub")
    script = "cd sub; exec \"$@\""
    done = run("--", "sh", "-c", script, "sh", *python("a", 5, "../a", "../b", "../a", "../c", "new.h5")[1:])
    assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith("h5cow: 3 files without history were changed")
    assert done.stderr.strip().endswith(f"h5cow import {folder / 'a'}")
    done = run("-q", *python("a", 6, "a", "b"))
    assert done.stderr == ""


def test_run_is_quiet_where_a_plain_file_was_only_read_or_is_gone(folder):
    plain("a.h5")
    assert run(*python("r", "look", "a.h5")).stderr == ""
    assert run(*python("r+", "look", "a.h5")).stderr == ""
    words = python("r+", 5, "a.h5")
    words[3] += "import os; os.unlink('a.h5')"
    assert run(*words).stderr == ""


def test_run_hears_of_other_drivers_and_of_links_into_plain_files(folder):
    code = "import h5py; f=h5py.File('core.h5','w',driver='core'); f['x']=[1]; f.close()"
    assert "core.h5' has no history" in run("--", sys.executable, "-c", code).stderr
    code = "import h5py; f=h5py.File('m.h5','w',driver='core',backing_store=False); f['x']=[1]; f.close()"
    assert run("--", sys.executable, "-c", code).stderr == ""
    plain("a.h5")
    run("--", sys.executable, "-c", "import h5py; h5py.File('b.h5','w')['l']=h5py.ExternalLink('a.h5','/')")
    done = run("--", sys.executable, "-c", "import h5py; f=h5py.File('b.h5','r+'); f['l/x'][3]=4; f.close()")
    assert "a.h5' has no history" in done.stderr and len(done.stderr.splitlines()) == 1


def test_one_run_in_another_is_told_once(folder):
    plain("a.h5")
    done = run("-m", "outer", "--", H5COW, "run", *python("r+", 5, "a.h5"))
    assert done.stderr.count("h5cow import") == 1 and "no HDF5 file was opened" not in done.stderr
    assert "message" in done.stderr
    done = run("-m", "outer", "--", H5COW, "run", *python("a", 5, "new.h5"))
    assert done.stderr == "" and versions("new.h5") == ["1"]
    done = run("--", "sh", "-c", '"$@" & "$@"; wait', "sh", *python("a", 6, "a.h5")[1:2], "-c",
               "import h5py,os; h5py.File(f'{os.getpid()}.h5','w')['x']=[1]")
    assert (done.returncode, done.stderr) == (0, "")
    done = run("-m", "outer", "--", H5COW, "run", "--", "true")
    assert done.stderr.count("no HDF5 file was opened") == 1 and "'true'" in done.stderr, done.stderr
    assert run("--", H5COW, "run", "-q", "--", "true").stderr == ""


@pytest.mark.parametrize("words, what", [
    (["-m", "text"], "message"), (["--name", "n"], "name"), (["-o", "name=n"], "name"), (["-o", "message=m"], "message")])
def test_a_name_or_message_of_a_version_that_was_not_made_is_told(folder, words, what):
    assert run(*words, *python("a", 5, "a.h5")).stderr == ""
    again = [w.replace("=n", "=o") if w != "n" else "o" for w in words]  # a name can be given once
    done = run(*again, *python("a", 5, "a.h5"))
    assert done.returncode == 0 and len(done.stderr.splitlines()) == 1
    assert "there is no new version" in done.stderr and what in done.stderr and versions("a.h5") == (
        ["n"] if what == "name" else ["1"])
    assert run("-q", *again, *python("a", 5, "a.h5")).stderr == ""
    assert run(*again, *python("a", 7, "a.h5")).stderr == ""
    assert run(*python("a", 7, "a.h5")).stderr == "", "nothing was promised"


@pytest.mark.parametrize("verb", ["run", "import"])
@pytest.mark.parametrize("option, real", [
    ("colour=red", "option 'colour' is unknown"), ("compress=bogus", "option compress=bogus: allowed is"),
    ("threads=0", "option threads=0: allowed is 1 to 64"), ("name=a/b", "option name=a/b: allowed is")])
def test_a_mistake_in_an_option_is_what_is_told_first(folder, verb, option, real):
    plain("a.h5")
    words = ["true"] if verb == "run" else ["a.h5"]
    told = h5cow(verb, "-o", option, *words, code=2)
    assert told.startswith(f"h5cow: {real}") and len(told.splitlines()) == 1 and "plugin" not in told


# ---- which version --------------------------------------------------------------------------------------------------


@pytest.fixture
def named(folder):
    for value, words in enumerate((["--name", "first"], ["--name", "second look"], [])):
        assert run(*words, *python("a", value + 1, "a.h5")).returncode == 0
    return "a.h5"


def read(name):
    code = "import h5py,sys; print(h5py.File(sys.argv[1])['x'][0])"
    return run("--", sys.executable, "-c", code, name)


def test_a_version_is_found_by_its_place_whatever_its_name_is(named):
    for number in (1, 2, 3):
        assert read(f"{named}@#{number}").stdout == f"{number}\n"
        h5cow("export", f"{named}@#{number}", f"{number}.h5")
        with h5py.File(f"{number}.h5") as f:
            assert f["x"][0] == number
    assert h5cow("run", "--at", "#2", "--", sys.executable, "-c", "import h5py; print(h5py.File('a.h5')['x'][0])") == "2\n"
    for wrong in ("#0", "#4", "#", "#x", "#1x", "#-1", "# 1", "#99999999999999999999"):
        told = h5cow("stat", f"{named}@{wrong}", code=2)
        assert "Traceback" not in told and len(told.splitlines()) == 1, told


def test_a_version_that_is_not_there_is_answered_with_those_that_are(named):
    told = h5cow("stat", f"{named}@second", code=2)
    assert "there is no version 'second'" in told
    assert "#1 'first', #2 'second look', #3 '3'" in told, told
    for value in range(4, 30):
        assert run(*python("a", value, "a.h5")).returncode == 0
    told = h5cow("stat", f"{named}@second", code=2)
    assert "#1 'first'" in told and "#29 '29'" in told and "#15" not in told and len(told) < 300, told
    log = h5cow("log", named).splitlines()
    assert log[0].split()[:2] == ["version", "#"] and log[-1].split()[:2] == ["first", "1"]
    assert json.loads(h5cow("log", "--json", named))[-1]["number"] == 1


def test_a_new_name_does_not_look_like_a_place(folder):
    for name in ("2", "latest"):
        assert f"'{name}' means something already" in h5cow("run", "--name", name, "true", code=2)
    told = h5cow("run", "--name", "#2", "true", code=2)
    assert told.startswith("h5cow: option name=#2: allowed is")


def utc(microseconds, digits):
    from datetime import datetime, timedelta, timezone

    moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=microseconds)
    text = moment.strftime("%Y-%m-%dT%H:%M:%S.%f")[: 20 + digits]
    return (text if digits else text[:19]) + "Z"


def test_versions_of_one_second_are_told_apart_by_their_times(folder):
    code = """
import h5py, os
with h5py.File('a.h5', 'w') as f:
    d = f.create_dataset('x', (1000,), 'i4')
    for n in range(1, 9):
        d[0] = n
        f.flush()
"""
    assert run("-o", "commit=flush", "--", sys.executable, "-c", code).returncode == 0
    log = list(reversed(json.loads(h5cow("log", "--json", "a.h5"))))
    for n, version in enumerate(log[:8], 1):
        assert version["name"] == str(n)
        assert version["time"] == utc(version["time_us"], 6)
        assert read("a.h5@{%s}" % version["time"]).stdout == f"{n}\n"
        shorter = [v["name"] for v in log if v["time_us"] // 1000 <= version["time_us"] // 1000][-1]
        assert read("a.h5@{%s}" % utc(version["time_us"], 3)).stdout == f"{min(int(shorter), 8)}\n"
    before = utc(log[0]["time_us"] - 1, 6)
    assert "a.h5: there is no version" in h5cow("stat", "a.h5@{%s}" % before, code=2)
    for wrong in ("2026-01-31T12:00.5", "2026-01-31T12:00:05.", "2026-01-31T12:00:05.1234567890123", "2026-01-31.5"):
        assert "is not a revision" in h5cow("stat", "a.h5@{%s}" % wrong, code=2)
    # what the list shows can be given back
    shown = [line.split()[2] for line in h5cow("log", "--utc", "a.h5").splitlines()[1:]]
    assert len(set(shown)) == len(shown)
    for n, time in zip(range(8, 0, -1), shown[-8:]):
        assert read("a.h5@{%s}" % time).stdout == f"{n}\n"


# ---- log ------------------------------------------------------------------------------------------------------------


def test_log_shows_local_time_with_its_zone(folder):
    assert run(*python("a", 1, "a.h5")).returncode == 0
    time = json.loads(h5cow("log", "--json", "a.h5"))[0]
    utc_shown = h5cow("log", "--utc", "a.h5").splitlines()[1].split()[2]
    assert utc_shown == utc(time["time_us"], 0)
    assert time["time"] == utc(time["time_us"], 6)
    for zone, offset in (("UTC0", "+00:00"), ("XST-5:30", "+05:30"), ("YST3:30", "-03:30")):
        shown = h5cow("log", "a.h5", env={**ENV, "TZ": zone}).splitlines()[1].split()[2]
        assert shown.endswith(offset) and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d", shown)
        assert read("a.h5@{%s}" % shown).stdout == "1\n"
        assert json.loads(h5cow("log", "--json", "a.h5", env={**ENV, "TZ": zone}))[0]["time"] == time["time"]


def test_log_is_one_line_a_version_whatever_programs_and_messages_hold(folder):
    code = "import h5py\n\nwith h5py.File('a.h5', 'w') as f:\n\tf['x'] = [1]\n"
    assert run("-m", "two\nlines\tand \x1b[31mred\x9b", "--", sys.executable, "-c", code).returncode == 0
    log = h5cow("log", "a.h5")
    assert len(log.splitlines()) == 2 and "\x1b" not in log and "\t" not in log
    assert r"two\nlines\tand \x1b[31mred" in log
    assert "  with" not in log.splitlines()[1].split("python3")[1]
    assert json.loads(h5cow("log", "--json", "a.h5"))[0]["message"].startswith("two\nlines\tand \x1b[31mred")


# ---- files that are none --------------------------------------------------------------------------------------------


def test_a_file_whose_creator_died_is_called_what_it_is(folder):
    code = "import h5py,os,sys; f=h5py.File('a.h5','w'); f['x']=[1]; os._exit(0) if sys.argv[1]=='die' else input()"
    assert run("-q", "--", sys.executable, "-c", code, "die").returncode == 0
    verbs = [["log", "a.h5"], ["ls", "a.h5"], ["show", "a.h5"], ["diff", "a.h5"], ["blame", "a.h5", "/x"], ["hash", "a.h5"], ["bisect", "-b", "max > 1", "a.h5", "/x"], ["stat", "a.h5"], ["report", "a.h5"], ["verify", "a.h5"], ["export", "a.h5", "o"], ["copy", "a.h5", "o"], ["cp", "a.h5:/x", "o"], ["restore", "a.h5@1"], ["undo", "a.h5"], ["redo", "a.h5"], ["tag", "a.h5"], ["tag", "a.h5@1", "t"], ["rename", "a.h5@1", "t"], ["describe", "a.h5@1", "t"],
             ["recover", "a.h5", "o"], ["import", "a.h5"], ["import", "a.h5", "o"]]
    for words in verbs:
        told = h5cow(*words, code=2)
        assert "died before" in told and "first commit" in told and len(told.splitlines()) == 1, told
        assert "not an HDF5 file" not in told and not os.path.exists("o")
    assert "died before" in h5cow("recover", "--dry-run", "a.h5")
    child = subprocess.Popen([H5COW, "run", "--", sys.executable, "-c", code.replace("a.h5", "b.h5") .replace(
        "input()", "(print('made', flush=True), input())"), "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENV)
    assert child.stdout.readline() == b"made\n"
    for words in (["log", "b.h5"], ["stat", "b.h5"], ["verify", "b.h5"], ["export", "b.h5", "o"]):
        told = h5cow(*words, code=2)
        assert "being created" in told and len(told.splitlines()) == 1, told
    child.communicate(b"\n")
    assert run(*python("a", 5, "a.h5")).returncode == 0 and versions("a.h5") == ["1"]


def test_what_is_no_file_is_told_at_once(folder):
    os.mkfifo("fifo")
    os.mkdir("folder")
    open("empty", "w").close()
    for name, kind in (("fifo", "regular file"), ("folder", "regular file"), ("/dev/null", "regular file"), ("empty", "empty")):
        for words in (["log", name], ["stat", name], ["verify", name], ["export", name, "o"], ["copy", name, "o"],
                      ["import", name], ["import", name, "o"], ["recover", name, "o"]):
            told = subprocess.run([H5COW, *words], capture_output=True, text=True, timeout=WAITING, env=ENV)
            assert told.returncode == 2 and kind in told.stderr.replace('ordinary', 'regular') and len(told.stderr.splitlines()) == 1, (words, told)
            assert not os.path.exists("o")


# ---- help, man pages, completion ------------------------------------------------------------------------------------

VERBS = ("run", "log", "ls", "show", "diff", "blame", "bisect", "hash", "stat", "report", "import", "export", "cp", "restore", "undo", "redo", "tag", "rename", "describe", "copy", "verify", "recover", "doctor")
DOCS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs")


def test_help_man_page_completion_and_document_name_the_same_options():
    completion = h5cow("help", "--completion", "bash")
    zsh, fish = (h5cow("help", "--completion", shell) for shell in ("zsh", "fish"))
    document = open(os.path.join(DOCS, "command.md")).read()
    whole = h5cow("help", "--man", "")
    for verb in VERBS:
        text = h5cow(verb, "--help")
        assert h5cow("help", verb) == text and f"  {verb} " in h5cow("--help")
        options = {o for line in text.splitlines() if line.startswith("  ") and line.lstrip().startswith("-")
                   for o in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", line.lstrip().split("  ")[0])}
        assert {"-h", "--help"} <= options
        page = h5cow("help", "--man", verb).replace("\\-", "-")
        words = completion.split(f"    {verb}) options='")[1].split("'")[0].replace("=", "").split()
        assert set(words) == options, verb
        line = zsh.split(f"    {verb}) options=(")[1].split("\n")[0]
        assert set(re.findall(r"'\*(--?[a-z][a-z-]*)[=+]?\[", line)) == options, verb
        of_verb = re.findall(rf"^complete -c h5cow -n '__fish_h5cow_verb {verb}' -([sl]) (\S+)", fish, re.M)
        assert {("-" if kind == "s" else "--") + name for kind, name in of_verb} == options, verb
        for said in re.findall(r"^ +-\S.*?  +(\S.*)$|^ {20,}(\S.*)$", text, re.M):
            assert f"[{''.join(said)}]" in line and f"-d '{''.join(said)}'" in fish, (verb, said)
        for option in options:
            assert re.search(rf"^\.B .*(?<![\w-]){option}\b", page, re.M), (verb, option)
        section = document.split(f"\n## {verb}\n")[1].split("\n## ")[0]
        for option in (o for o in options - {"--help"} if o.startswith("--")):
            short = re.search(rf"(-\w), {option}\b", text)
            assert option in section or short and short[1] in section, (verb, option)
        assert f"h5cow\\-{verb} (1)" in whole


def test_man_pages_are_right_for_man():
    try:
        subprocess.run(["groff", "--version"], capture_output=True, check=True)
    except OSError:
        pytest.skip("no groff here")
    for verb in ("", *VERBS):
        page = h5cow("help", "--man", verb)
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=page, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), verb


def test_completion_completes_verbs_and_options(tmp_path):
    script = h5cow("help", "--completion", "bash")
    for words, found in ((["ver"], "verify"), (["exp"], "export"), (["e"], "env export"), (["log", "--ut"], "--utc"), (["help", "do"], "doctor"),
                         (["export", "--dis"], "--discard-history"), (["run", "--mes"], "--message=")):
        text = script + 'compopt() { :; }\nCOMP_WORDS=(h5cow "$@") COMP_CWORD=$#; _h5cow; echo "${COMPREPLY[*]}"'
        done = subprocess.run(["bash", "-uc", text, "bash", *words], capture_output=True, text=True)
        assert (done.stdout.strip(), done.stderr) == (found, ""), words


def typed(folder, keys):
    """What a bash with the completion makes of KEYS, as the words of a command."""
    pathlib.Path(folder, "completion").write_text(h5cow("help", "--completion", "bash"))
    env = {**ENV, "TERM": "dumb", "PS1": "next: ", "PATH": f"{os.path.dirname(H5COW)}:{os.environ['PATH']}", "HISTFILE": ""}
    terminal, own = pty.openpty()
    child = subprocess.Popen([shutil.which("setsid"), "--ctty", "bash", "--norc", "--noprofile", "-i"], stdin=own, stdout=own, stderr=own, cwd=folder, env=env)
    os.close(own)
    said = b""
    # Ctrl-E, Ctrl-A: the line that has become of it is given to another command
    os.write(terminal, b"stty -echo; source completion; unset PROMPT_COMMAND; printf 'rea''dy\\n'\n")
    while b"ready\r\nnext: " not in said:  # from then on keys are readline's, not the terminal's
        said += os.read(terminal, 4096)
    os.write(terminal, keys.encode() + b"\x05;printf 'no more''\\n';exit\x01printf '(%s)' \n")
    while b"no more\r\n" not in said:  # test/terminal.py tells why not until it has ended
        said += os.read(terminal, 4096)
    child.wait()
    os.close(terminal)
    return re.findall(r"\(([^()\r\n]+)\)", re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", said.decode()).split("ready\r\nnext: ")[1])


def test_completion_knows_versions_and_paths(folder):
    code = "import h5py; f = h5py.File('a.h5', 'a'); f.require_group('group/inner').attrs['n'] = 1; f.require_dataset('group/data', (3,), 'i4')[...] = len(f.attrs); f['group'].attrs['v'] = {}"
    for name, value in (("first", 1), ("second", 2)):
        assert run("--name", name, "--", sys.executable, "-c", code.format(value)).returncode == 0
    candidates = lambda *words: h5cow("help", "--candidates", *words).splitlines()  # noqa: E731
    assert candidates("show", "a.h5@") == ["a.h5@second", "a.h5@first"] and candidates("show", "a.h5@f") == ["a.h5@first"]
    assert candidates("diff", "a.h5@first", "a.h5@second", "/gr") == ["/group/"]
    assert candidates("blame", "--utc", "a.h5", "/group/") == ["/group/data", "/group/inner/"]
    assert candidates("cp", "a.h5@first:/group/d") == ["a.h5@first:/group/data"] and candidates("ls", "a.h5", "/") == ["/group/"]
    assert candidates("log", "a.h5", "--object=/gr") == ["--object=/group/"]
    for nothing in (["show", "none.h5@"], ["show", "a.h5"], ["log", "a.h5@"], ["run", "a.h5@"], ["ls", "/"], ["cp", "none:/"], ["blame", "a.h5", "/none/"], ["no", ""], ["ls"]):
        assert candidates(*nothing) == [], nothing
    assert typed(".", "h5cow show a.h5@f\t") == ["h5cow", "show", "a.h5@first"]
    assert typed(".", "h5cow diff a.h5@fi\t a.h5@se\t /gr\td\t") == ["h5cow", "diff", "a.h5@first", "a.h5@second", "/group/data"]
    assert typed(".", "h5cow cp -f a.h5@fi\t\x7f:/gr\tda\ta.h\t") == ["h5cow", "cp", "-f", "a.h5@first:/group/data", "a.h5"]
    assert typed(".", "h5cow exp\ta.h5@s\to.h5") == ["h5cow", "export", "a.h5@second", "o.h5"]


def on_a_terminal(*words, **env):
    """What is seen there, and the exit code."""
    said, code = all_on_a_terminal(H5COW, *words, env={**ENV, "TERM": "vt100", **env})
    return said.decode().replace("\r\n", "\n"), code


def test_a_terminal_gets_a_pager(folder):
    assert run(*python("w", 5, "a.h5")).returncode == run(*python("a", 6, "a.h5")).returncode == 0
    plainly = h5cow("ls", "a.h5")
    for words, env, expected, code in (
        (("ls", "a.h5"), {"PAGER": "sed s/^/:/"}, "".join(f":{line}\n" for line in plainly.splitlines()), 0),
        (("ls", "a.h5"), {"PAGER": "false", "H5COW_PAGER": "sed s/^/-/"}, "".join(f"-{line}\n" for line in plainly.splitlines()), 0),
        (("ls", "a.h5"), {"PAGER": "sed s/^/:/", "H5COW_PAGER": ""}, plainly, 0),
        (("ls", "a.h5"), {"PAGER": "cat"}, plainly, 0),
        (("ls", "a.h5"), {"PAGER": "sed s/^/:/", "TERM": "dumb"}, plainly, 0),
        (("ls", "a.h5"), {"PATH": "/nowhere"}, plainly, 0),
        (("diff", "a.h5@1", "a.h5@2"), {"PAGER": "sed s/^/:/"}, "".join(f":{line}\n" for line in h5cow("diff", "a.h5@1", "a.h5@2", code=1).splitlines()), 1),
        (("verify", "none.h5"), {"PAGER": "sed s/^/:/"}, "h5cow: cannot read 'none.h5': No such file or directory\n", 2),
        (("log", "none.h5"), {"PAGER": "sed s/^/:/"}, "h5cow: cannot read 'none.h5': No such file or directory\n", 2),
    ):  # fmt: skip
        assert on_a_terminal(*words, **env) == (expected, code), (words, env)
    assert h5cow("ls", "a.h5", env={**ENV, "PAGER": "sed s/^/:/"}) == plainly


def test_completion_is_for_three_shells():
    told = h5cow("help", "--completion", "tcsh", code=2)
    assert all(f" {shell}" in told for shell in ("bash", "zsh", "fish")) and len(told.splitlines()) == 1
