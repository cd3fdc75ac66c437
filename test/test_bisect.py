"""h5cow bisect, against histories of which it is known where they went wrong."""

import json
import random
import sys

import pytest
from conftest import h5cow
from seeds import again, seed

MAKE = """
import json
values = json.loads(sys.argv[2])
for number, value in enumerate(values, 1):
    with h5py.File(sys.argv[1], 'a') as f:
        if value is None:
            if 'x' in f:
                del f['x']
            f.attrs['n'] = number
            continue
        if 'x' not in f:
            f.create_dataset('x', (20, 30), 'f8', chunks=(10, 10), maxshape=(None, 30))
        f['x'][3, 4] = value
        f.attrs['n'] = number
"""


@pytest.fixture
def history(programs, tmp_path):
    def make(values):
        path = tmp_path / f"history{len(values)}.h5"
        done = programs.python(MAKE, path, json.dumps(values))
        assert done.returncode == 0, done.stderr
        return path

    return make


def bisect(*words, code=0):
    return json.loads(h5cow("bisect", "--json", *words, code=code))


def first(*words):
    return bisect(*words)["first_bad"]["name"]


@pytest.mark.parametrize("expression", ["max > 5", "max>=9", "[3,4] == 9", " [ 3 , 4 ]  !=  1 ", "sum > 5e0", "mean > .01"])
def test_an_expression(history, expression):
    path = history([1, 1, 1, 9, 9, 9, 9])
    assert first("--bad", expression, path, "/x") == "4"
    told = bisect("--bad", expression, path, "/x")
    assert len(told["looked_at"]) <= 4 and told["first_bad"]["number"] == 4


def test_the_other_expressions(history):
    path = history([1, float("nan"), -3])
    assert first("-b", "nan > 0", f"{path}@2", "/x") == "2"
    assert first("-b", "nan == 0", f"{path}@1", "/x") == "1"
    assert first("-b", "min < 0", path, "/x") == "3"
    assert first("-b", "size <= 600", path, "/x") == "1"
    assert first("-b", "max < 1", path, "/x") == "2"
    assert bisect("-b", "[99,0] == 0", path, "/x", code=1)["first_bad"] is None
    assert "3 dimensions" not in h5cow("bisect", "-b", "[1] == 0", path, "/x", code=2)


def test_every_place_in_histories_of_every_length(history):
    draw = random.Random(seed())
    print(again())
    for length in (1, 2, 3, 5, draw.randrange(6, 20)):
        bad = draw.randrange(1, length + 1)
        path = history([1] * (bad - 1) + [9] * (length - bad + 1))
        told = bisect("--bad", "max == 9", path, "/x")
        assert told["first_bad"]["number"] == bad and len(told["looked_at"]) <= 2 + length.bit_length()
        code = f"import h5py, sys; sys.exit(int(h5py.File({str(path)!r})['x'][3, 4] == 9))"
        assert first(path, "--", sys.executable, "-c", code) == str(bad)
        path.unlink()


def test_a_command_sees_each_version(history, tmp_path):
    path, seen = history([1, 1, 9, 9, 9]), tmp_path / "seen"
    code = f"""
import h5py, sys
with h5py.File(sys.argv[1]) as f, open({str(seen)!r}, 'a') as told:
    told.write('%s %d\\n' % (sys.argv[1], f.attrs['n']))
    print('noise')
    sys.exit(3 if f['x'][3, 4] == 9 else 0)
"""
    told = h5cow("bisect", path, "--", sys.executable, "-c", code, "{}")
    assert "the first bad one is version 3\n" in told and "noise" not in told
    assert {line for line in seen.read_text().splitlines()} <= {f"{path}@{n} {n}" for n in range(1, 6)}
    verdicts = [line for line in told.splitlines() if line.startswith("version ")]
    assert verdicts[0] == "version 5: bad" and len(verdicts) <= 4
    seen.unlink()
    assert "version 3\n" in h5cow("bisect", path, "--", sys.executable, "-c", code, path)
    assert {int(line.split()[1]) for line in seen.read_text().splitlines()} >= {5, 2, 3}


def test_versions_that_are_left_out(history):
    path = history([1, 1, None, 9, 9])
    told = h5cow("bisect", "--bad", "max == 9", path, "/x", code=2)
    assert "the first bad one is version 4, or one of those before it that were left out" in told
    path = history([None, 1, None, 1, 9, None, 9])
    assert first("--bad", "max == 9", path, "/x") == "5"
    path = history([9, None])
    assert "nothing can be told of version 2" in h5cow("bisect", "--bad", "max == 9", path, "/x", code=2)
    path = history([None, None, 9])
    assert "or one of those before it" in h5cow("bisect", "--bad", "max == 9", path, "/x", code=2)


def test_random_patterns_against_a_model(history, tmp_path):
    """Good ones, then bad ones, and among them some that tell nothing; a table says which is what."""
    draw, table = random.Random(seed()), tmp_path / "table"
    print(again())
    path = history([1] * 8)
    command = ["sh", "-c", f"exit $(sed -n $(echo {{}} | sed 's/.*@//')p {table})"]
    for _ in range(20):
        length = draw.randrange(1, 9)
        turns = draw.randrange(1, length + 1)  # bad from here on
        codes = [125 if draw.random() < 0.3 else 0 if n < turns else 1 for n in range(1, length + 1)]
        table.write_text("".join(f"{code}\n" for code in codes))
        bad = [n for n, code in enumerate(codes, 1) if code == 1]
        if codes[-1] == 125:
            assert "nothing can be told" in h5cow("bisect", f"{path}@{length}", "--", *command, code=2), codes
        elif bad[0] == 1 or codes[bad[0] - 2] == 0:
            assert first(f"{path}@{length}", "--", *command) == str(bad[0]), codes
        else:
            told = h5cow("bisect", f"{path}@{length}", "--", *command, code=2)
            assert f"the first bad one is version {bad[0]}, or one of those" in told, codes


def test_125_leaves_out_and_126_ends(history):
    path = history([1, 1, 9, 9])
    shell = ["sh", "-c"]
    assert "or one of those" in h5cow("bisect", path, "--", *shell, "case {} in *@4) exit 1;; *) exit 125;; esac", code=2)
    for wrong in ("126", "127", "200"):
        assert f"exit code {wrong} at version 4" in h5cow("bisect", path, "--", *shell, f"exit {wrong} # {{}}", code=2)
    assert "exit code 143" in h5cow("bisect", path, "--", *shell, "kill -15 $$ # {}", code=2)
    assert "cannot run '/no/program'" in h5cow("bisect", path, "--", "/no/program", "{}", code=2)


def test_nothing_is_bad(history):
    path = history([1, 2, 3])
    assert h5cow("bisect", "--bad", "max > 3", path, "/x", code=1) == "version 3: good\nthe last one is good\n"


def test_from_a_version_that_is_good(history):
    path = history([9, 1, 1, 9, 9])
    assert first("--bad", "max == 9", "--good", "2", path, "/x") == "4"
    assert first("--bad", "max == 9", "-g", "#2", f"{path}@~1", "/x") == "4"
    assert "no version behind 5" in h5cow("bisect", "--bad", "max == 9", "-g", "5", path, "/x", code=2)
    assert "was not made of" in h5cow("bisect", "--bad", "max == 9", "-g", "5", f"{path}@2", "/x", code=2)
    assert "there is no version '7'" in h5cow("bisect", "--bad", "max == 9", "-g", "7", path, "/x", code=2)


@pytest.mark.parametrize("words, sentence", [
    ([], "either --bad=EXPRESSION, or -- and a command"),
    (["FILE"], "either --bad=EXPRESSION, or -- and a command"),
    (["--bad", "max > 1", "FILE", "/x", "--", "true"], "either --bad=EXPRESSION, or -- and a command"),
    (["--bad", "max > 1", "FILE"], "of which dataset"),
    (["FILE", "/x", "--", "true"], "a command is told no dataset"),
    (["--bad", "max > 1", "FILE", "x"], "begins with '/'"),
    (["--bad", "max 1", "FILE", "/x"], "is no expression"),
    (["--bad", "max > 1 2", "FILE", "/x"], "is no expression"),
    (["--bad", "[1,] > 1", "FILE", "/x"], "is no expression"),
    (["--bad", "[" + "1," * 40 + "1] > 1", "FILE", "/x"], "is no expression"),
    (["--bad", "median > 1", "FILE", "/x"], "is no expression"),
    (["--bad", "", "FILE", "/x"], "is no expression"),
    (["--bad", "max > 1", "FILE@9", "/x"], "there is no version '9'"),
    (["--bad", "[1,2,3] > 1", "FILE", "/x"], "it has 2 dimensions"),
])
def test_wrong_usage(history, words, sentence):
    path = history([1, 2])
    told = h5cow("bisect", *(word.replace("FILE", str(path)) for word in words), code=2)
    assert sentence in told and told.startswith("h5cow: ") and len(told.splitlines()) <= 2, told


def test_a_dataset_that_the_last_version_lacks(programs, history):
    path = history([1, 9])
    assert programs.python("with h5py.File(sys.argv[1], 'a') as f: del f['x']", path).returncode == 0
    told = h5cow("bisect", "--bad", "max == 9", path, "/x", code=2)
    assert "nothing can be told of version 3, the last one, which has no dataset '/x'" in told and f"such as {path}@2" in told
    assert first("--bad", "max == 9", f"{path}@2", "/x") == "2"
    for name in "/typo", "/":
        assert f"no version of '{path}' has a dataset '{name}'" in h5cow("bisect", "--bad", "max == 9", path, name, code=2)


def test_what_holds_no_numbers(programs, tmp_path):
    path = tmp_path / "texts.h5"
    assert programs.python("with h5py.File(sys.argv[1], 'w') as f: f['t'] = 'a text'", path).returncode == 0
    assert "it does not hold numbers" in h5cow("bisect", "--bad", "max > 1", path, "/t", code=2)
    assert "has a dataset '/nowhere'" in h5cow("bisect", "--bad", "max > 1", path, "/nowhere", code=2)


def test_each_command_can_be_ended_by_signals(history):
    code = "import signal, sys; sys.exit(bool(signal.pthread_sigmask(signal.SIG_BLOCK, [])) or sys.argv[1][-1] in '34')"
    told = h5cow("bisect", history([1, 1, 1, 1]), "--", sys.executable, "-c", code, "{}")
    assert "version 2: good" in told and "the first bad one is version 3\n" in told


def test_numbers_are_those_that_the_dataset_can_hold(history):
    path = history([0.0, 0.1, 0.1])
    assert first("--bad", "[3,4] == 0.1", path, "/x") == "2"
    assert bisect("--bad", "max > 0.1", path, "/x", code=1)["first_bad"] is None
    assert "is no expression" in h5cow("bisect", "--bad", "max == nan", path, "/x", code=2)


TYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "f16", ">i2", ">u8", ">f4", ">f8"]


def test_numbers_of_every_type_come_to_what_numpy_says(programs, tmp_path):
    """Whole numbers, whose sum is exact in any order; more than a thread adds at a time; NaN beside them."""
    draw = random.Random(seed())
    print(again())
    path = tmp_path / "types.h5"
    count = draw.randrange(150_000, 250_000)
    done = programs.python(
        """
import json
answers = {}
r = np.random.default_rng(int(sys.argv[3]))
with h5py.File(sys.argv[1], 'w') as f:
    for t in sys.argv[4:]:
        kind, info = np.dtype(t), (np.iinfo if np.dtype(t).kind in 'iu' else np.finfo)(t)
        least, most = (info.min, info.max) if kind.kind in 'iu' else (-1000, 1000)
        values = r.integers(max(least, -2**40), min(most, 2**40), int(sys.argv[2])).astype(t)
        if kind.kind in 'iu':
            values[[7, -7]] = least, most
        else:
            values[r.integers(0, len(values), 9)] = np.nan
        f.create_dataset(t, data=values, chunks=(10_000,), shuffle=True, compression=1)
        numbers = [int(v) for v in values[~np.isnan(values)]]
        answers[t] = [min(numbers), max(numbers), sum(numbers), len(values) - len(numbers)]
print(json.dumps(answers))
""",
        path, count, seed(), *TYPES,
    )
    assert done.returncode == 0, done.stderr
    for name, (least, most, total, nans) in json.loads(done.stdout).items():
        for what, number in (("min", least), ("max", most), ("sum", total), ("nan", nans)):
            if abs(number) >= 2**64:  # more than the format of the processor holds
                continue
            assert first("-b", f"{what} == {number}", path, f"/{name}") == "1", (name, what, number)
            assert bisect("-b", f"{what} < {number}", path, f"/{name}", code=1)["first_bad"] is None
