"""bench.py --beside COMMIT: another state of the code in the same run, and a table of both.

Each state has its own Bench, files and results, in a thread of its own. One of the threads runs at a time, and hands over before it
begins a piece of work: piece by piece in the order before, after, after, before, before ... So both have the same machine, whatever
else it does. The works are those of this state's benchmarks/: only plugin and command are the other's. What HDF5 does by itself is
measured twice; the table has its median of all rounds.
"""

import contextlib
import os
import pathlib
import statistics
import threading

import report
from figures import H5COW, NATIVE, is_size, median, ratios


class Turns:
    """Whose turn it is, of two."""

    def __init__(self):
        self.condition = threading.Condition()
        self.turn = 0
        self.done = [-1, -1]  # pieces that each has begun, less one
        self.left = [False, False]

    def begin(self, who):
        with self.condition:
            self.condition.wait_for(lambda: self.turn == who)

    @contextlib.contextmanager
    def piece(self, who):
        """Around a piece of work, in the thread of WHO. What follows it is done before the other's turn too."""
        with self.condition:
            if self.done[who] >= 0 and self.done[who] % 2 == who and not self.left[1 - who]:
                self.turn = 1 - who
                self.condition.notify_all()
                self.condition.wait_for(lambda: self.turn == who)
            self.done[who] += 1
        yield

    def leave(self, who):
        with self.condition:
            self.left[who] = True
            self.turn = 1 - who
            self.condition.notify_all()


def run_both(before, after, names):
    """Runs the parts NAMES of both. Raises what one of them has raised."""
    turns, raised = Turns(), []

    def run(bench, who):
        bench.piece = lambda: turns.piece(who)
        turns.begin(who)
        try:
            bench.run(names)
        except BaseException as error:  # raised again in the thread that waits
            raised.append(error)
        finally:
            turns.leave(who)

    threads = [threading.Thread(target=run, args=(bench, who), daemon=True) for who, bench in enumerate((before, after))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def search_path(build):
    """HDF5_PLUGIN_PATH for the plugin of another BUILD."""
    own = str(pathlib.Path(os.environ.get("H5COW_BUILD", "")) / "connector")
    others = [folder for folder in os.environ.get("HDF5_PLUGIN_PATH", "").split(":") if folder and folder != own]
    return ":".join([str(pathlib.Path(build) / "connector"), *others])


# ---- the table ----


def measured(results):
    """-> label, name that says the unit (figures.is_size), way, {round: value} of all that was measured."""
    for (work, way), rounds in results.seconds.items():
        yield work, "", way, rounds
    for (what, way), rounds in results.bytes.items():
        yield f"{what}, bytes", "bytes", way, rounds
    for (which, way), values in results.opened.items():
        yield f"open, {which} time", "", way, dict(enumerate(values))
    for key, values in results.waits.items():
        way = key[1] if key[0] == "write" else H5COW
        label = ", ".join(str(word) for word in key if word not in ("", way))
        yield f"sync: {label}", "", way, dict(enumerate(values))
    for (rank, chunks, changes, way), commits in results.commits.items():
        label = f"commit: rank {rank}, {chunks:,} chunks, {changes} changed"
        yield f"{label}, bytes", "bytes", way, {n: c[0] + c[1] for n, c in enumerate(commits)}
        yield label, "", way, {n: c[3] for n, c in enumerate(commits)}
    for (part, size, what, way), rounds in results.figures.items():
        if what != "points":
            yield f"{part} {size:,}: {what}", what, way, rounds


def shown(unit, value):
    if value is None:
        return ""
    if unit.endswith("part"):
        return f"{value:.3f}"
    return report.size_text(value) if is_size(unit) else report.time_text(value)


def table(before, after):
    """BEFORE and AFTER: Results. The ratio is the median of the rounds' ratios."""
    found = {}
    for state, results in enumerate((before, after)):
        for label, unit, way, rounds in measured(results):
            if way in (H5COW, NATIVE):
                found.setdefault((label, unit), {})[way, state] = rounds
    rows = []
    for (label, unit), ways in found.items():
        native = [value for state in (0, 1) for value in ways.get((NATIVE, state), {}).values()]
        own = [ways.get((H5COW, state)) for state in (0, 1)]
        each = ratios(own[1], own[0])
        rows.append([label, shown(unit, statistics.median(native) if native else None), *(shown(unit, median(one)) for one in own),
                     f"{statistics.median(each):.2f}" if each else "", f"{min(each):.2f} to {max(each):.2f}" if len(each) > 1 else ""])
    return report.table(["", "native", "before", "after", "after / before", "each round"], rows)
