"""The pages for who changes h5cow name files, functions and verbs that exist."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ("architecture.md", "contributing.md")
# What a name on a page may be relative to.
BASES = [ROOT / base for base in ("", "connector", "docs", "test", "cli")]
SOURCES = [p for f in ("connector", "cli", "test", "api", "docs", "benchmarks", "python") for p in (ROOT / f).rglob("*.*")]


def named(page):
    """What stands in backticks, and the files of a drawing's first column; blocks of commands are left out."""
    text = re.sub(r"^```.*?^```", "", (ROOT / "docs" / page).read_text(), flags=re.M | re.S)
    return re.findall(r"`([^`\n]+)`", text)


def exists(name):
    """A path, or the bare name of a source in the room that the text is about."""
    return any((base / name).exists() for base in BASES) or any(p.name == name for p in SOURCES)


def missing(names):
    files = {n for n in names if re.fullmatch(r"[\w./-]+\.(?:c|h|f90|py|md|sh|build)|(?!/)[\w./-]*\w/", n)}
    # what the tests or ./dev make
    return files, sorted(n for n in files if not exists(n) and not n.startswith("build/"))


@pytest.mark.parametrize("page", PAGES)
def test_files_that_a_page_names_exist(page):
    files, wrong = missing(named(page))
    assert len(files) > 20 and wrong == []


@pytest.mark.parametrize("page", PAGES)
def test_functions_that_a_page_names_exist(page):
    code = "".join(p.read_text() for p in SOURCES if p.suffix in (".c", ".h"))
    names = {w for n in named(page) for w in re.findall(r"\b(?:cow|COW)_\w+\b", n)}
    assert names and sorted(n for n in names if not re.search(rf"\b{n}\b", code) and not n.endswith("_")) == []


@pytest.mark.parametrize("page", PAGES)
def test_links_of_a_page_lead_somewhere(page):
    links = re.findall(r"\]\(([\w./-]+)(?:#[\w-]+)?\)", (ROOT / "docs" / page).read_text())
    assert links and [link for link in links if not (ROOT / "docs" / link).exists()] == []


def test_verbs_and_options_of_dev_exist():
    told = (ROOT / "dev").read_text().split("Environment:")[0]
    text = (ROOT / "docs/contributing.md").read_text()
    for verb in set(re.findall(r"\./dev (\w+)", text)):
        assert re.search(rf"^  {verb}\b", told, re.M), verb
    for option in set(re.findall(r"\./dev (?:test|bench|reliability) (--[\w-]+)", text)):
        assert re.search(rf"{option}\b", told), option


def test_planted_names_are_found():
    _, wrong = missing(["store/pool.c", "store/pond.c", "history/", "histories/", "test/test_docs.py"])
    assert wrong == ["histories/", "store/pond.c"]
