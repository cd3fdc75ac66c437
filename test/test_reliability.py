"""The page of ./dev reliability: what is on it, and that running one item keeps the others."""

import reliability


def test_page_has_every_item_and_says_what_was_not_run(tmp_path, monkeypatch):
    monkeypatch.setattr(reliability, "PAGE", tmp_path / "reliability.md")
    lines = [
        {"item": 1, "what": "a | b", "result": "0 wrong", "command": "crash"},
        {"item": 5, "what": "bits", "result": "1,000 noticed", "command": "bitrot"},
    ]
    text = reliability.page(lines, "2026-01-31")
    assert all(f"## {item}. {title}" in text for item, title in reliability.ITEMS.items())
    assert text.count("nothing yet") == len(reliability.ITEMS) - 2
    assert "| a \\| b | 0 wrong | `crash` |" in text


def test_items_that_are_not_run_keep_their_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(reliability, "PAGE", tmp_path / "reliability.md")
    lines = [{"item": 4, "what": "each | call fails", "result": "0 wrong", "command": "faults"}]
    reliability.PAGE.write_text(reliability.page(lines, "2026-01-31"))
    assert reliability.kept(4) == lines
    assert reliability.kept(5) == []


def test_program_that_does_not_exist_is_told_as_not_run(tmp_path):
    lines = reliability.run(3, "release", "test/no_such_program.py", [], tmp_path)
    assert lines[0]["item"] == 3 and lines[0]["result"].startswith("not run")


def test_command_names_no_place_of_this_machine():
    for part in reliability.parts(1):
        assert str(reliability.TOP) not in reliability.shown(*part[1:])


def test_page_has_what_this_folder_knows_and_else_what_it_had(tmp_path, monkeypatch):
    monkeypatch.setattr(reliability, "PAGE", tmp_path / "reliability.md")
    old = [{"item": n, "what": "old", "result": "0 wrong", "command": "old"} for n in (3, 4)]
    reliability.PAGE.write_text(reliability.page(old, "2026-01-31"))
    new = {"item": 3, "what": "new", "result": "0 wrong", "command": "new"}
    (tmp_path / "test-kills-py.json").write_text(f"[{reliability.json.dumps(new)}]")
    assert reliability.all_lines(tmp_path, 1) == [new, old[1]]


def test_a_part_that_is_run_alone_leaves_the_rows_of_its_siblings(tmp_path, monkeypatch):
    monkeypatch.setattr(reliability, "PAGE", tmp_path / "reliability.md")
    faults = {"item": 4, "what": "faults", "result": "0 wrong", "command": "test/faults --all"}
    before = {"item": 4, "what": "versions", "result": "9 wrong", "command": "build/release/test/version_faults --all"}
    reliability.PAGE.write_text(reliability.page([faults, before], "2026-01-31"))
    new = {**before, "result": "0 wrong"}
    (tmp_path / "version_faults.json").write_text(f"[{reliability.json.dumps(new)}]")
    assert reliability.all_lines(tmp_path, 1) == [new, faults]
