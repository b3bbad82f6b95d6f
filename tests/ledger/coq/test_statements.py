"""What is shown of a theorem is what stands in its source; what it uses is what Coq says."""

import re

import pytest

from convattn_ledger.coq import statements
from convattn_ledger.coq.sources import reached, read_project, sentences
from convattn_ledger.coq.statements import items, statement
from convattn_ledger.locations import checkout, coq_directory
from ledger.coq.coq_tree import write_sources

TEXT = "Theorem one :\n\n  1 = 1. (* 1. *)\nProof. by []. Qed.\n"


def test_a_statement_is_shown_line_by_line_without_comments(tmp_path, monkeypatch):
    monkeypatch.setattr(statements, "coq_directory", lambda: tmp_path)
    write_sources(tmp_path, p__one=TEXT, foundation__a="Lemma a : True. Proof. by []. Qed.")
    assert statement("p/one.v") == "Theorem one :\n  1 = 1."
    for file in ("foundation/a.v", "p/two.v"):
        with pytest.raises(ValueError, match=rf"file='{file}', but expected a theorem"):
            statement(file)


def test_what_is_used_is_read_from_statements_and_proofs(tmp_path):
    write_sources(
        tmp_path,
        foundation__a="Definition two := 2. Definition far := 3. "
        "Lemma hard : two = 2. Proof. by []. Qed.",
        foundation__b="Definition two := 0.",
        p__one="From Convattn.foundation Require Import a. "
        "Lemma own : two = two. (* far *) Proof. by []. Qed. "
        "Theorem one : True. Proof. have := own; exact: hard. Qed.",
    )
    uses_of = items(read_project(tmp_path))
    assert uses_of["p/one.v", "own"].uses == (("foundation/a.v", "two"),)
    assert set(uses_of["p/one.v", "one"].uses) == {("p/one.v", "own"), ("foundation/a.v", "hard")}
    uses = {key: item.uses for key, item in uses_of.items()}
    assert reached(uses, ("p/one.v", "one")) == {
        *(("foundation/a.v", name) for name in ("two", "hard")),
        ("p/one.v", "own"),
    }
    assert uses_of["foundation/a.v", "hard"].text == "Lemma hard : two = 2."


def test_the_uses_are_those_that_coq_wrote_down() -> None:
    """Coq's .glob files say where each name of a compiled file comes from."""
    root = checkout()
    compiled = root / "build" / "prove" / "coq" if root else None
    if compiled is None or not (compiled / "sharpened" / "finite.glob").is_file():
        pytest.skip("the proofs are not compiled here (make prove)")
    project = read_project(coq_directory())
    uses_of = items(project)
    # The fields of records are names, and no items of their own.
    ours = {(item.key, use) for item in uses_of.values() for use in item.uses if use in uses_of}
    coqs = set()
    for file in project.files:
        text = project.text(file)
        starts = [
            (len(text[: sentence.start].encode()), (file, match["name"]))
            for sentence in sentences(text)
            if (match := statements._STARTS.match(sentence.text))
        ]
        glob = (compiled / file).with_suffix(".glob").read_text("utf-8")
        reference = r"^R(\d+):\d+ Convattn\.(\S+) \S+ (\S+) "
        for place, module, name in re.findall(reference, glob, re.MULTILINE):
            key = module.replace(".", "/") + ".v", name.rpartition(".")[2]
            owner = [own for start, own in starts if start <= int(place)]
            if owner and key in uses_of and key != owner[-1]:
                coqs.add((owner[-1], key))
    assert len(coqs) > 3000
    assert len(coqs - ours) <= 0.005 * len(coqs), sorted(coqs - ours)
    assert len(ours - coqs) <= 0.03 * len(coqs), sorted(ours - coqs)[:20]
