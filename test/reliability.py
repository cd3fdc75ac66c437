#!/usr/bin/env python3
"""Runs everything that shows what a crash, a fault or damage does, longer than ./dev test, and writes
docs/reliability.md from what the programs tell: ./dev reliability calls this. Takes some hours on two cores.

usage: reliability.py [--only ITEM]... [--part PROGRAM]... [--minutes N] [--dry-run] [--builds]

Each part is a program that appends JSON lines to the file named by H5COW_RESULTS: {"item", "what", "result", "command"}.
A part that fails is told on the page as well. The page is written after each part, so a run may be ended and gone on with:
what it told is kept in build/reliability, and what is not run now keeps its lines. Lines of items that this folder knows
nothing of stay as they are on the page.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import time

TEST = pathlib.Path(__file__).resolve().parent
TOP = TEST.parent
PAGE = TOP / "docs/reliability.md"
TIMEOUT = 3 * 3600

ITEMS = {
    1: "Power cuts",
    2: "Power cuts while recovering",
    3: "Kills",
    4: "Faults",
    5: "Bit rot and fuzzing",
    6: "Planted bugs",
    7: "Accidents",
    8: "Many at once",
    9: "Cost",
    10: "Differential test",
    11: "Hostile files",
    12: "Copies",
}
FUZZ_TARGETS = ("collection", "dense", "described", "fence", "index", "lookup", "open", "record", "rows")


def parts(minutes):
    """(item, build, program, arguments). A program is one of BUILD/test, or a Python file of this repository. One that does
    not exist is told as not run. libFuzzer runs MINUTES for each target, and keeps new inputs in build/fuzz/found."""
    fuzz = [
        (5, "fuzz", f"fuzz_{t}", [f"-max_total_time={int(60 * minutes)}", f"BUILD/found/{t}", str(TEST / "fuzz/corpus" / t)])
        for t in FUZZ_TARGETS
    ]
    return [
        (1, "release", "crash", ["--long"]),  # its last lines tell item 2 as well
        (1, "release", "test/compact_cuts.py", ["--states", "100000"]),
        (3, "release", "test/kills.py", []),
        (4, "release", "faults", ["--all", "--command", "BUILD/cli/h5cow"]),
        (4, "release", "version_faults", ["--all", "--command", "BUILD/cli/h5cow"]),
        (5, "release", "bitrot", ["--bits", "100000", "--command", "BUILD/cli/h5cow"]),
        (5, "release", "test/test_recover.py", []),
        *fuzz,
        (6, "planted", "test/planted.py", ["BUILD"]),
        (7, "release", "test/test_accidents.py", []),
        (8, "release", "test/many.py", []),
        (9, "release", "benchmarks/bench.py", ["--only", "sync", "--repeat", "3"]),
        (10, "release", "test/soak.py", []),
        (11, "release", "test/hostile.py", ["--all"]),
        (11, "sanitize", "test/hostile.py", ["--all", "--build", "BUILD"]),
        (12, "release", "differential", ["--copies", "5000"]),
    ]


THROUGH_CONNECTOR = ("bitrot", "differential")
# What a part needs besides its own build.
MORE_BUILDS = {"benchmarks/bench.py": ["without-journal"]}


def builds_of(part):
    return [part[1], *MORE_BUILDS.get(part[2], [])]


def command_of(build, program, arguments):
    folder = TOP / "build" / build
    words = [word.replace("BUILD", str(folder)) for word in arguments]
    if program.startswith("test/test_"):
        return TOP / program, [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", TOP / program, *words]
    if program.endswith(".py"):
        return TOP / program, [sys.executable, "-B", TOP / program, *words]
    return folder / "test" / program, [folder / "test" / program, *words]


def shown(build, program, arguments):
    """The command as somebody in the repository writes it."""
    words = [word.replace("BUILD", f"build/{build}").replace(str(TOP) + "/", "") for word in arguments]
    place = program if program.endswith(".py") else f"build/{build}/test/{program}"
    return " ".join([place, *words])


def name_of(build, program):
    return re.sub(r"\W+", "-", program) + ("-sanitize" if build == "sanitize" else "")


def run(item, build, program, arguments, logs):
    """The lines that the part told, or one that says what happened to it. Also in LOGS/PROGRAM.json."""
    file, command = command_of(build, program, arguments)
    line = {"item": item, "what": program, "command": shown(build, program, arguments)}
    if not file.exists():
        return [{**line, "result": "not run: there is no such program"}]
    results = logs / (name_of(build, program) + ".results")
    results.unlink(missing_ok=True)
    folder = TOP / "build" / build
    env = {k: v for k, v in os.environ.items() if k != "HDF5_VOL_CONNECTOR"}
    env.update(H5COW_RESULTS=str(results), HDF5_PLUGIN_PATH=str(folder / "connector"), H5COW_BUILD=str(folder))
    env["PATH"] = f"{folder / 'cli'}:{env['PATH']}"
    if program in THROUGH_CONNECTOR:
        env["HDF5_VOL_CONNECTOR"] = "h5cow"
    elif not program.endswith(".py"):
        del env["HDF5_PLUGIN_PATH"]  # HDF5 looks for plugins even where none is selected
    log = logs / (name_of(build, program) + ".log")
    started = time.monotonic()
    with open(log, "w") as out:
        try:
            code = subprocess.run(
                [str(word) for word in command], env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=TIMEOUT,
                cwd=TOP if program.endswith(".py") else folder / "test"
            ).returncode
        except subprocess.TimeoutExpired:
            code = "none: it did not come to an end"
    text = log.read_text(errors="replace")
    seconds = time.monotonic() - started
    lines = [json.loads(told) for told in results.read_text().splitlines()] if results.exists() else []
    if not lines:  # a program that tells nothing yet: its last line
        last = [told for told in text.splitlines() if told.strip()]
        lines = [{**line, "result": last[-1].strip() if last else "no output"}]
    if code != 0:
        lines.append({**line, "result": f"**failed** (exit code {code}); the end of its output: `{text[-300:].strip()}`"})
    for told in lines:
        told["command"] = told.get("command") or line["command"]
    (logs / (name_of(build, program) + ".json")).write_text(json.dumps(lines, indent=1))
    print(f"{ITEMS[item]}: {program}: {'passed' if code == 0 else 'FAILED'} ({seconds:.0f} s, {log})", flush=True)
    return lines


def machine():
    memory = re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())
    model = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
    kernel = platform.release().split("-")[0]
    return "{} cores ({}), {:.0f} GiB, Linux {}".format(
        os.cpu_count(), model.group(1).strip() if model else platform.machine(), int(memory.group(1)) / 2**20, kernel
    )


def hdf5_version():
    return subprocess.run(["pkg-config", "--modversion", "hdf5"], capture_output=True, text=True).stdout.strip() or "unknown"


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def page(lines, date):
    out = [
        "# Reliability",
        "",
        "What was done to h5cow, and what was seen. Written by `./dev reliability`, which does it again; `./dev test` does the",
        "same with fewer repetitions. What is promised is in [promises.md](promises.md).",
        "",
        f"{date}, HDF5 {hdf5_version()}, {machine()}. Parts are run one by one: a row that was not run again is older than that.",
    ]
    for item, title in ITEMS.items():
        rows = [line for line in lines if line["item"] == item]
        out += ["", f"## {item}. {title}", "", "| done | seen | command |", "|---|---|---|"]
        out += [f"| {cell(r['what'])} | {cell(r['result'])} | `{cell(r['command'])}` |" for r in rows]
        if not rows:
            out.append("| nothing yet | | |")
    return "\n".join(out) + "\n"


def kept(item):
    """The rows that the page has of an item."""
    if not PAGE.exists():
        return []
    section = re.search(rf"^## {item}\. .*?(?=^## |\Z)", PAGE.read_text(), re.M | re.S)
    rows = re.findall(r"^\| (.*?) (?<!\\)\| (.*?) (?<!\\)\| `(.*?)` \|$", section.group(0), re.M) if section else []
    rows = [[text.replace("\\|", "|") for text in row] for row in rows]
    return [{"item": item, "what": a, "result": b, "command": c} for a, b, c in rows]


def all_lines(logs, minutes):
    """What this folder knows of every part; of parts that it knows nothing of, what the page has."""
    lines, whole, lacking, unknown = [], set(), set(), set()  # programs that told, and that did not; items not told in full
    for item, build, program, _ in parts(minutes):
        file = logs / (name_of(build, program) + ".json")
        if file.exists():
            lines += json.loads(file.read_text())
            whole.add(pathlib.Path(program).name)
        else:
            lacking.add(pathlib.Path(program).name)
            unknown.add(item)
    commands = {line["command"] for line in lines}
    for item in ITEMS:
        none = item not in {line["item"] for line in lines}
        for row in kept(item) if none or item in unknown else []:
            words = {pathlib.Path(word).name for word in row["command"].split()}
            if none or (row["command"] not in commands and not words & (whole - lacking)):
                lines.append(row)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", type=int, choices=list(ITEMS), help="run this item; several times")
    parser.add_argument("--part", action="append", help="run this program, as --dry-run names it; several times")
    parser.add_argument("--minutes", type=float, default=5, help="of fuzzing, each target (default 5)")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be run")
    parser.add_argument("--builds", action="store_true", help="only say which builds that needs")
    arguments = parser.parse_args()
    todo = parts(arguments.minutes)
    if arguments.only:
        chosen = {1 if item == 2 else item for item in arguments.only}
        todo = [part for part in todo if part[0] in chosen]
    if arguments.part:
        todo = [part for part in todo if pathlib.Path(part[2]).name in arguments.part]
    if not todo:
        parser.error("there is no such part")
    if arguments.builds:
        print(*(() if arguments.dry_run else sorted({build for part in todo for build in builds_of(part)})))
        return 0
    if arguments.dry_run:
        for item, build, program, words in todo:
            there = "" if command_of(build, program, words)[0].exists() else "  (not there)"
            print(f"{item} {shown(build, program, words)}{there}")
        return 0
    logs = TOP / "build/reliability"
    logs.mkdir(parents=True, exist_ok=True)
    for target in FUZZ_TARGETS:
        (TOP / "build/fuzz/found" / target).mkdir(parents=True, exist_ok=True)
    failed = False
    for part in todo:
        failed |= any("**failed**" in line["result"] for line in run(*part, logs))
        PAGE.write_text(page(all_lines(logs, arguments.minutes), datetime.date.today().isoformat()))
    print(f"{PAGE.relative_to(TOP)} is written")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
