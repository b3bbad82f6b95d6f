"""The journal of a verification: only passed results, only of the same sources and settings."""

import pytest

from convattn_ledger.journal import CONTINUED, Journal
from convattn_ledger.worker import Result


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "proofs"
    folder.mkdir()
    (folder / "a.py").write_text("1")
    return folder


def test_what_passed_is_read_again_and_a_cut_line_is_not(place):
    journal = Journal.of((place,), 0)
    assert journal.read() == {}
    journal.add("S.a", "one", Result(True, "3 cases\nequal", 1.5))
    journal.add("S.a", "two", Result(False, "off", 1.5))
    journal.add("S.a", "three", Result(None, "no device", 1.5))
    with journal.path.open("a") as file:
        file.write('["S.a", "four", "3 ca')
    assert journal.read() == {("S.a", "one"): Result(True, f"{CONTINUED}3 cases\nequal", 1.5)}
    journal.remove()
    journal.remove()
    assert journal.read() == {}


def test_what_is_no_result_is_passed_over(place):
    journal = Journal.of((place,), 0)
    lines = ("[1, 2, 3, 4]", "[]", "null", "{}", "\udcff", "1e999", "")
    for name in ("one", "two"):
        journal.add("S.a", name, Result(True, "3 cases", 1.5))
        with journal.path.open("a", errors="surrogateescape") as file:
            file.write("\n".join(lines))
    assert [*journal.read()] == [("S.a", "one"), ("S.a", "two")]


@pytest.mark.slow
def test_another_state_of_sources_settings_or_environment_has_another_journal(place, monkeypatch):
    paths = [Journal.of((place,), settings).path for settings in (1, 0)]
    for name in ("a.py", "b.v", "_CoqProject"):  # what Coq runs with has no suffix
        (place / name).write_text("2")
        paths.append(Journal.of((place,), 0).path)
    (place / "__pycache__").mkdir()
    (place / "__pycache__" / "a.pyc").write_text("2")
    assert Journal.of((place,), 0).path == paths[-1]
    monkeypatch.setenv("JAX_ENABLE_X64", "maybe")
    paths.append(Journal.of((place,), 0).path)
    assert len({*paths}) == len(paths)


@pytest.mark.parametrize("name", ["a.py", "new.py"])
@pytest.mark.quick(1)
def test_nothing_is_kept_after_a_file_was_written_even_if_it_is_put_back(place, name):
    """A worker may have loaded it in between, and may keep it loaded."""
    journal = Journal.of((place,), 0)
    journal.add("S.a", "one", Result(True, "3 cases"))
    (place / name).write_text("2")
    if name == "new.py":
        journal.add("S.a", "two", Result(True, "3 cases"))
        (place / name).unlink()
    else:
        (place / name).write_text("1")
    journal.add("S.a", "three", Result(True, "3 cases"))
    assert journal.changed == str(place / name)
    assert journal.read() == {}
    again = Journal.of((place,), 0)
    assert again.path == journal.path
    assert [*again.read()] == [("S.a", "one")]


def test_a_link_is_not_followed_and_a_cache_that_cannot_be_written_does_not_matter(place, tmp_path):
    journal = Journal.of((place,), 0)
    journal.path.parent.mkdir(parents=True)
    target = tmp_path / "target"
    target.write_text("kept")
    journal.path.symlink_to(target)
    journal.add("S.a", "one", Result(True, "3 cases", 1.5))
    assert target.read_text() == "kept"
    blocked = Journal(target / "no" / "folder.jsonl")
    blocked.add("S.a", "one", Result(True, "3 cases", 1.5))
    assert blocked.read() == {}
