"""A theorem made empty by its definitions is refused, though Coq accepts it."""

import json

import pytest

from convattn_ledger.coq.lock import written
from convattn_ledger.coq.sources import LOCK, read_project
from convattn_ledger.locations import coq_directory
from ledger.coq.coq_tree import (
    claim_file,
    copy_proofs,
    needs_coq,
    prove,
    theorem,
    write_sources,
)
from ledger.proof_files import write

pytestmark = [needs_coq, pytest.mark.slow]

LIMITS = "foundation/sharp_limits.v"
ADDED = "From mathcomp Require Import all_ssreflect.\n"
SUM = theorem("total", "minn 2 3 = 2")


def lock(folder, sources, **options):
    """Write the lock of a tree that passes."""
    outcome = prove(sources, folder / "out", **options)
    assert outcome.failures == ()
    (sources / LOCK).write_bytes(written(outcome.lock))


@pytest.fixture(scope="module")
def limits(tmp_path_factory):
    """A theorem on limits of the project, with the foundation that it requires, locked."""
    folder = tmp_path_factory.mktemp("limits")
    copy_proofs(folder / "coq", LIMITS)
    write_sources(
        folder / "coq",
        p__total=ADDED
        + "From mathcomp Require Import all_algebra.\n"
        + "From Convattn.foundation Require Import sharp_limits.\n"
        + theorem(
            "total",
            "forall (R : realFieldType) (c : R), tends_to (fun=> c) c",
            "move=> R c; exact: tends_to_constant. Qed.",
        ),
    )
    lock(folder, folder / "coq")
    return folder


def refused(folder, sources):
    """The failures of a tree that Coq accepts."""
    outcome = prove(sources, folder / "out", locked=True)
    assert not any("Coq refuses" in failure.found for failure in outcome.failures)
    assert not any(item.checked for item in outcome.theorems)
    return [(failure.file, failure.line, failure.found) for failure in outcome.failures]


def test_the_lock_holds_a_statement_and_what_it_reaches(limits):
    content = json.loads((limits / "coq" / LOCK).read_bytes())
    assert list(content["definitions"]) == ["Convattn.foundation.sharp_limits.tends_to"]
    assert content["theorems"]["p/total.v"]["definitions"] == list(content["definitions"])
    assert prove(limits / "coq", limits / "out", locked=True).failures == ()


def test_a_limit_that_holds_vacuously_is_refused(limits):
    path = limits / "coq" / LIMITS
    original = path.read_text("utf-8")
    old = "exists a0, forall a, a0 <= a -> `|f a - l| <= eps."
    assert original.count(old) == 1
    text = original.replace(old, "exists a0, forall a, a0 <= a -> a < a0 -> `|f a - l| <= eps.")
    head = text[: text.index("Section Limits.")]
    constant = "Lemma tends_to_constant (R : realFieldType) (c : R) : tends_to (fun=> c) c.\n"
    proof = "Proof. by move=> eps _; exists 0 => a le; rewrite ltNge le. Qed.\n"
    try:
        path.write_text(f"{head}{constant}{proof}", "utf-8")
        failures = refused(limits, limits / "coq")
    finally:
        path.write_text(original, "utf-8")
    ((file, line, words),) = failures
    assert (file, line) == (
        LIMITS,
        original[: original.index("Definition tends_to")].count("\n") + 1,
    )
    assert "the meaning of 'Convattn.foundation.sharp_limits.tends_to' has changed" in words


@pytest.mark.parametrize(
    ("definition", "proof", "name", "full"),
    [
        ("Definition minn (a b : nat) := a * 0 * b.", "2 2 = 0", "minn", "mathcomp"),
        ("Definition False := True.", "False", "False", "Coq.Init.Logic.False"),
        ("Notation maxn a b := 0 (only parsing).", "maxn 2 3 = 0", "maxn", "mathcomp"),
    ],
)
@pytest.mark.parametrize("place", ["p", "foundation"])
def test_a_name_of_a_library_is_not_defined_again(tmp_path, definition, proof, name, full, place):
    statement = proof.replace("2 2", "minn 2 2") if name == "minn" else proof
    body = theorem("total", statement, "by []. Qed." if name != "False" else "exact I. Qed.")
    files = {"p__total": f"{ADDED}{definition}\n{body}"}
    if place == "foundation":
        files = {
            "foundation__base": f"{ADDED}{definition}\n",
            "p__total": f"{ADDED}From Convattn.foundation Require Import base.\n{body}",
        }
    sources = write_sources(tmp_path / "coq", **files)
    ((file, line, words), *_) = [
        item for item in refused(tmp_path, sources) if "imported libraries" in item[2]
    ]
    assert (file, line) == (f"{place}/{'total' if place == 'p' else 'base'}.v", 2)
    assert f"'{name}', which the imported libraries have as {full}" in words


@pytest.mark.parametrize("line", ["Import", "Export"])
def test_a_name_of_an_imported_module_is_not_defined_again(tmp_path, line):
    """Also where the library is exported, or required in one line with a file of ours."""
    files = {
        "foundation__base": "Definition base := 0.\n",
        "p__total": f"Require Import List Convattn.foundation.base.\n{line} PeanoNat.Nat.\n"
        "Definition rev (n : nat) := n.\nDefinition double (n : nat) := n.\n"
        + theorem("total", "rev (double 1) = 1"),
    }
    sources = write_sources(tmp_path / "coq", **files)
    hidden = [words for _, _, words in refused(tmp_path, sources) if "imported libraries" in words]
    assert [words.split(",")[0] for words in hidden] == ["'rev'", "'double'"]


def test_a_file_is_not_named_as_a_module_of_a_library(tmp_path):
    files = {
        "foundation__Nat": "Definition add (a b : nat) := 0.\n",
        "p__total": "From Convattn.foundation Require Import Nat.\n"
        + theorem("total", "Nat.add 2 2 = 0"),
    }
    sources = write_sources(tmp_path / "coq", **files)
    ((file, _, words),) = [
        item for item in refused(tmp_path, sources) if "imported libraries" in item[2]
    ]
    assert file == "foundation/Nat.v"
    assert words.endswith("have as Coq.Init.Nat")


def test_the_statement_of_a_lemma_that_a_definition_rests_on_is_locked(tmp_path):
    """Coq prints a match without the property that the lemma gives."""
    lemma = (
        "Lemma spec : forall n : nat, { b : bool | b = Nat.ltb n 2 }.\n"
        "Proof. intro n; exists (Nat.ltb n 2); reflexivity. Qed.\n"
        "Definition small (n : nat) := match spec n with exist _ b _ => b end.\n"
    )
    text = lemma + theorem("total", "forall n, small n = small n")
    sources = write_sources(tmp_path / "coq", p__total=text)
    lock(tmp_path, sources)
    changed = text.replace("b = Nat.ltb n 2", "b = true").replace(
        "exists (Nat.ltb n 2)", "exists true"
    )
    write_sources(sources, p__total=changed)
    ((_, line, words),) = refused(tmp_path, sources)
    assert (line, words) == (1, "the meaning of 'Convattn.p.total.spec' has changed since the lock")


def test_a_letter_that_only_looks_like_another_is_refused(tmp_path):
    text = "Definition f\u0430lse := True.\n" + theorem("total", "f\u0430lse", "exact I. Qed.")
    sources = write_sources(tmp_path / "coq", p__total=text)
    assert ("p/total.v", 1, "not ASCII") in refused(tmp_path, sources)


def test_a_statement_that_changes_or_is_new_is_refused(tmp_path):
    sources = write_sources(tmp_path / "coq", p__total=f"{ADDED}{SUM}")
    lock(tmp_path, sources)
    write_sources(sources, p__total=f"{ADDED}{SUM}".replace("minn 2 3", "minn 2 4"))
    assert refused(tmp_path, sources) == [("p/total.v", 2, "not as in the lock: the statement")]
    write_sources(sources, p__total=f"{ADDED}{SUM}", p__two=theorem("two"))
    outcome = prove(sources, tmp_path / "out", locked=True)
    assert [item.found for item in outcome.failures] == ["the statement is not in the lock"]
    assert [item.checked for item in outcome.theorems] == [True, False]
    (sources / "p" / "two.v").unlink()
    (sources / "p" / "total.v").rename(sources / "p" / "three.v")
    write_sources(sources, p__three=theorem("three"))
    failures = [item.found for item in prove(sources, tmp_path / "out", locked=True).failures]
    assert failures == ["the statement is not in the lock", "it holds p/total.v, no theorem"]


def test_the_lock_shows_what_a_statement_says(tmp_path):
    sources = write_sources(tmp_path / "coq", p__total=f"(* Half. *) {ADDED}{SUM}")
    lock(tmp_path, sources)
    entry = json.loads((sources / LOCK).read_bytes())["theorems"]["p/total.v"]
    assert entry["comments"] == [["Half."]]
    assert entry["statement"] == ["minn 2 3 = 2"]
    assert len(entry["sha256"]) == 64


@pytest.mark.parametrize(
    ("comment", "covers", "what"),
    [
        ("S.a: the sum of all.", "(1)", "the comments"),
        ("S.a: the total.", "all", "the covers"),
        ("S.a: the sum of all.", "all", "the comments, the covers"),
    ],
)
def test_words_above_a_theorem_and_what_it_covers_are_locked(tmp_path, comment, covers, what):
    def place(comment, covers):
        write_sources(tmp_path / "coq", p__total=f"(** {comment} *) {ADDED}{SUM}")
        write(tmp_path / "proofs", p__a=claim_file("S.a", "p/total.v", covers))
        return {"proofs": tmp_path / "proofs"}

    lock(tmp_path, tmp_path / "coq", **place("S.a: the total.", "(1)"))
    options = {"locked": True, **place(comment, covers)}
    outcome = prove(tmp_path / "coq", tmp_path / "out", **options)
    assert [(item.file, item.line, item.found) for item in outcome.failures] == [
        ("p/total.v", 2, f"not as in the lock: {what}")
    ]
    assert not outcome.theorems[0].checked


@pytest.mark.parametrize(
    "content", [None, b"{", b"[]", b'{"schema": 1, "theorems": {}, "definitions": {}}']
)
def test_without_a_lock_nothing_is_checked(tmp_path, content):
    sources = write_sources(tmp_path / "coq", p__two=theorem("two"))
    if content is not None:
        (sources / LOCK).write_bytes(content)
    ((file, _, words),) = refused(tmp_path, sources)
    assert file == LOCK
    assert "not there, or not valid" in words


def test_the_lock_of_the_proofs_knows_every_theorem():
    project = read_project(coq_directory())
    content = json.loads(project.sources[LOCK])
    assert {name.rpartition(".")[0] for name in content["definitions"]} <= {
        project.qualified(file) for file in project.files
    }
