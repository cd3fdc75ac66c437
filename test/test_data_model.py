"""docs/data-model.md says what the tests do: it is what test/data_model.py writes, and every test that it names exists."""

import pathlib
import re

import conftest
import data_model
import pytest

TEST = pathlib.Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def program():
    plugins = [path for folder in conftest.PLUGINS.split(":") for path in pathlib.Path(folder).glob("libh5cow.so")]
    path = plugins[0].resolve().parent.parent / "test/test_model"
    assert path.exists(), f"{path}: ./dev test builds it"
    return path


def test_page_is_what_the_tests_say(program):
    assert data_model.PAGE.read_text() == data_model.page(program), "run test/data_model.py"


def test_every_kind_and_operation_is_on_the_page(program):
    page = data_model.PAGE.read_text()
    columns, rows = data_model.table(program)
    assert len(columns) == 9 and len(rows) > 80
    for name, _, cells in rows:
        (line,) = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
        found = [cell.strip() for cell in line.split("|")[2:-1]]
        assert len(found) == len(columns) and all(found)
        for column, why, cell in zip(columns, cells, found, strict=True):
            assert cell == (f"none: {why}" if why else f"`/{column}`")


@pytest.mark.parametrize("test", [test for _, tests in data_model.ELSEWHERE for _, test in tests])
def test_named_test_exists(test):
    file, _, name = test.partition("::")
    text = (TEST / file).read_text()
    if file.endswith(".py"):
        assert re.search(rf"^def {name}\(", text, re.M)
    else:
        assert re.search(rf"^static void {name}\(void", text, re.M) and f"cmocka_unit_test({name})" in text


def test_a_missing_row_would_be_noticed(program, tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text("".join(data_model.PAGE.read_text().partition("| `links::")[0::2]))
    monkeypatch.setattr(data_model, "PAGE", page)
    with pytest.raises((AssertionError, ValueError)):
        test_every_kind_and_operation_is_on_the_page(program)
