"""The page of ./dev bench, from numbers that nobody measured: what is met, what is missed, and what could not be measured."""

import json
import pathlib
import re
import sys
import types

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

import beside  # noqa: E402
import engine  # noqa: E402
import figures  # noqa: E402
import report  # noqa: E402
from figures import H5COW, NATIVE, ONION, VERSIONED  # noqa: E402


@pytest.fixture
def results():
    """Of a run in which h5cow takes twice what native takes, and is small."""
    made = report.Results(engine.Sizes(quick=False))
    made.hdf5, made.repeat, made.took = "1.14.5", 2, 1800
    made.date, made.machine, made.system = "2026-01-01", "2 cores", "ext4"
    for number in (1, 2):
        for key, _, _ in report.WORKS:
            for way, seconds in zip(report.WAYS, (1.0, 3.0, 2.0)):
                made.work(key, way, number, seconds * number, 80)
        for key, _ in report.STORED:
            for way, size in zip(report.WAYS, (1 << 20, 3 << 20, 2 << 20)):
                made.stored(key, way, number, size)
        for goal in figures.GOALS:
            for size in (goal.size, goal.of) if isinstance(goal.of, int) else (goal.size,):
                for way, factor in ((NATIVE, 1), (VERSIONED, 20), (ONION, 2), (H5COW, 2)):
                    value = factor * (1e6 if figures.is_size(goal.what) else 1e-3)
                    made.figures.setdefault((goal.part, size, goal.what, way), {})[number] = value
    for size in (100, 100_000):
        made.figures["age", size, "file, bytes", H5COW] = {1: size * 4e3}
    for way, factor in ((NATIVE, 1), (VERSIONED, 20), (H5COW, 2)):
        made.figures["value", 10_000, "points", way] = {1: [[10, 0.1 * factor, 1e6], [10_000, 50.0 * factor, 1e7 * factor]]}
    for way in (NATIVE, report.BARE, H5COW):
        made.commit(1, 100, 1, way, [[3000.0, 20_000.0, 900.0, 1e-3]])
        made.opening(way, [2e-3, 1e-3, 1e-3])
    for way, sync in ((NATIVE, ""), (report.BARE, "off"), (H5COW, "off"), (H5COW, "normal"), (H5COW, "full")):
        made.synced(("write", way, sync), 1.0)
    for key in (("disk", "", ""), ("disk", "full", 0), ("disk", "full", 1)):
        made.synced(key, 1e-3)
    for sync in ("off", "normal", "full"):
        made.synced(("flush", sync, 0), 2e-3)
        made.synced(("close", sync, 0), 3e-3)
    return made


def row(page, name):
    return next(line for line in page.splitlines() if line.startswith(f"| {name} "))


def test_page_says_of_each_target_whether_it_is_met(results):
    page = report.Page(results).document()
    assert re.search(r"2\.00 x +\| +≤ 1\.15 x native +\| +\*\*missed\*\*", row(page, "write, no filter"))
    assert re.search(r"2\.00 x +\| +≤ 2\.0 x native +\| +met", row(page, "10,000 datasets: create, close"))
    assert re.search(r"2\.00 x +\| +≤ 1\.3 x native +\| +\*\*missed\*\*", row(page, "10,000 datasets: open, read one of each"))
    assert re.search(r"0\.10 x +\| +≤ 1/8 versioned-hdf5 +\| +met", page)
    assert re.search(r"1\.00 x +\| +≤ 2\.0 x that at 100 +\| +met", row(page, "10,000,000 chunks: commit"))
    assert re.search(r"native \+ 976\.56 KiB +\| +≤ native \+ 96\.00 MiB +\| +met", row(page, "10,000,000 chunks: write, memory"))
    assert "0 others were not measured" in page and "could not be measured" not in page


@pytest.mark.parametrize("value, verdict", [(0.94, "MISSED"), (0.95, "met"), (1.2, "met")])
def test_a_target_may_be_the_least(results, value, verdict):
    results.figures["forget", 1000, "free in all, gzip, part", H5COW] = {1: value}
    page = report.Page(results).document()
    table = page.split("## Forgetting")[1]
    assert re.search(rf"\| {value:.3f} +\| +≥ 0.950 {verdict} ", row(table, "1,000 versions: free in all, gzip"))


def test_every_goal_has_its_row(results):
    """A part or a size that is renamed in one place only would never be judged."""
    page = report.Page(results)
    page.document()
    assert page.absent() == []
    work = (ROOT / "benchmarks" / "programs.py").read_text() + (ROOT / "benchmarks" / "parts.py").read_text()
    for goal in figures.GOALS:
        assert f'"{goal.what}"' in work, goal
        named = {"value": "value", "append": "append", "chunks": "many_chunks", "age": "ages", "copy": "copies", "links": "groups"}
        sizes = getattr(results.sizes, named.get(goal.part, goal.part))
        for size in (goal.size, goal.of) if isinstance(goal.of, int) else (goal.size,):
            assert size == sizes or size in sizes, goal


def test_contestant_that_fails_is_named_with_its_reason(results):
    results.figures = {key: value for key, value in results.figures.items() if key[3] != VERSIONED}
    results.failures["series", 1500, VERSIONED, ""] = "PyPI | nothing"
    page = report.Page(results).document()
    series = page.split("## 1,500 versions of three series")[1]
    assert "not measured" in row(series, "1,500 versions of three series: a version")
    assert r"PyPI \| nothing" in page.split("## What could not be measured")[1]


def test_partial_results_make_a_page(results):
    empty = report.Results(results.sizes)
    assert report.Page(empty).document().count("not measured") >= len(figures.GOALS)
    empty.synced(("write", report.BARE, "off"), 1.0)
    empty.failures["sync", 1024, engine.ALL_WAYS, ""] = "ended"
    page = report.Page(empty)
    assert page.told() == [] and "Waiting" not in page.document()


def test_results_are_kept_in_a_file_and_added_to(results, tmp_path):
    results.failures["value", 10_000, ONION, ""] = "ended"
    results.save(tmp_path / "bench.json")
    json.loads((tmp_path / "bench.json").read_text())
    again = report.Results.load(tmp_path / "bench.json")
    assert report.Page(again).document() == report.Page(results).document()
    more = report.Results(results.sizes)
    more.figures["value", 500, "a version", H5COW] = {1: 1.0}
    both = more.merged(again)
    assert {key[1] for key in both.figures if key[0] == "value"} == {500}
    assert both.failures == {} and both.figures.keys() >= {key for key in results.figures if key[0] == "series"}


def failing(part, tmp_path, results):
    """An Engine without its processes."""
    made = engine.Engine.__new__(engine.Engine)
    vars(made).update(results=results, sizes=types.SimpleNamespace(patience=1), current=None, folder=tmp_path)
    with made.attempt(part, 10, ONION):
        made.run_child([sys.executable, "-c", "import sys; sys.exit('it broke')"], {})
    return made


def test_work_that_fails_stops_nothing_and_is_not_tried_again(results, tmp_path):
    made = failing("value", tmp_path, results)
    assert "it broke" in results.failures["value", 10, ONION, ""]
    with made.attempt("value", 10, ONION):
        made.run_child([sys.executable, "-c", f"open({str(tmp_path / 'ran')!r}, 'w')"], {})
    assert not (tmp_path / "ran").exists()
    with made.attempt("append", 10, ONION):
        made.run_child([sys.executable, "-c", "import time; time.sleep(60)"], {})
    assert "longer than 1 s" in results.failures["append", 10, ONION, ""]


def test_plots_are_the_same_for_the_same_numbers(results):
    pytest.importorskip("matplotlib", reason="only ./dev bench has it, and H5COW_BENCH=1")
    import plots

    found = dict(plots.all_plots(results))
    assert found.keys() == report.PLOTS.keys() == report.PLOTTED.keys() and found == dict(plots.all_plots(results))
    for svg in found.values():
        assert len(svg) < 40_000 and "prefers-color-scheme: dark" in svg and "<image" not in svg
        assert set(re.findall(r"font-family: ([^;\"]+)", svg)) == {"sans-serif"}
    page = report.Page(results).document()
    assert {f"{name}.svg" for name in found} == set(re.findall(r"\(plots/([\w.]+)\)", page))


def test_plots_of_the_page_are_there():
    page = (ROOT / "docs" / "performance.md").read_text()
    assert [name for name in re.findall(r"\]\((plots/[\w.]+)\)", page) if not (ROOT / "docs" / name).exists()] == []


def test_two_states_take_turns_and_each_goes_first_as_often():
    turns, order = beside.Turns(), []

    class Fake:
        def __init__(self, name, fails=False):
            self.name, self.fails = name, fails

        def run(self, names):
            for name in names:
                with self.piece():
                    order.append(f"{self.name}{name}")
                    if self.fails and name == 2:
                        raise ValueError(name)

    beside.run_both(Fake("b"), Fake("a"), range(5))
    assert order == ["b0", "a0", "a1", "b1", "b2", "a2", "a3", "b3", "b4", "a4"] and turns.turn == 0
    order.clear()
    with pytest.raises(ValueError):
        beside.run_both(Fake("b", fails=True), Fake("a"), range(4))
    assert order == ["b0", "a0", "a1", "b1", "b2", "a2", "a3"], "the other one goes on to its end"


def test_what_both_states_took_is_one_table(results):
    after = report.Results(results.sizes)
    for name in report.Results.KEPT:
        setattr(after, name, {key: {n: v / 4 for n, v in value.items()} if name == "figures" and "points" not in key and key[3] == H5COW else value
                              for key, value in getattr(results, name).items()})
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in beside.table(results, after).splitlines()]
    assert lines[0] == ["", "native", "before", "after", "after / before", "each round"]
    assert ["objects 10,000: change one", "", "2.0 ms", "500 µs", "0.25", "0.25 to 0.25"] in [[l[0], "", *l[2:]] for l in lines]
    assert ["plain: write", "1.50 s", "3.00 s", "3.00 s", "1.00", "1.00 to 1.00"] in lines
    measured = {key[0] for name in ("seconds", "bytes") for key in getattr(results, name)} | {key[0] for key in results.figures}
    assert all(any(line[0].startswith(what) for line in lines) for what in measured), "nothing that was measured is left out"
