import re

import pytest

from convattn_ledger.discovery import discover
from convattn_ledger.document import escape, render
from convattn_ledger.locations import coq_directory
from ledger.proof_files import claim, evidence, write


def test_the_document_holds_what_a_reader_needs_and_runs_nothing(tmp_path):
    certified = evidence("1/0", level="CERTIFIED", name="a|b", assumes="x < y", quick=False)
    proved = evidence("1/0", level="PROVED", name="coq", covers="(2), not (1)")
    proved = (
        proved[:-1] + ", theorem=lambda: 'Theorem one : a < b.', files=('proofs/coq/p/one.v',))"
    )
    text = claim("C20.lemma3", certified, proved, kinds="Kind.REFUTATION", verdict="REFUTED")
    text = text.replace("Printed. One is one.", "Printed. W_h * W_k < 1, as `a_b*c` says.")
    write(tmp_path, paper__lemma3=text, own__b=claim("S.b"))
    document = render(discover(tmp_path))
    for part in (
        "| [C20.lemma3](#c20lemma3) A tiny claim: *refuted* | Coq, certificates |",
        "- Claimed: One is one.\n- True: It is.\n",
        "## C20: Cordonnier, Loukas, Jaggi 2020\n",
        "### C20.lemma3",
        "Source: A source, §1. File: [`proofs/paper/lemma3.py`](../proofs/paper/lemma3.py).",
        "*Printed.* W\\_h \\* W\\_k &lt; 1, as `a_b*c` says.",
        "*What is true.* One is one.",
        "*Repair.* Nothing to repair.",
        "*Proof.* By reflexivity.",
        "```coq\nTheorem one : a < b.\n```",
        "| CERTIFIED | a\\|b |  | no | x &lt; y |",
        "| PROVED | [coq](../proofs/coq/p/one.v) | (2), not (1) | yes | nothing further |",
        "| TESTED | e |  | yes | nothing further |",
    ):
        assert part in document
    for word in ("*holds*", "*amended*", "| PROVED |", "| MEASURED |"):  # defined before use
        assert document.index(word) < document.index("| claim | shown by |")
    assert document.index("### C20.lemma3") < document.index("### S.b")


def test_the_legend_names_definitions_that_stand_where_its_links_lead(tmp_path):
    write(tmp_path, own__b=claim("S.b"))
    names = re.findall(r"\| \[`(\w+)`\]\(\.\./proofs/coq/([\w/.]+)\)", render(discover(tmp_path)))
    assert len(names) > 8
    for name, file in names:
        source = (coq_directory() / file).read_text("utf-8")
        assert re.search(rf"^Definition {name}\b", source, re.MULTILINE), name


def test_each_certificate_is_linked(tmp_path):
    files = ["certificates/S.b-K3.json", "certificates/S.b-K5_2.json"]
    certified = evidence(level="CERTIFIED", name="exact")[:-1] + f", files={tuple(files)!r})"
    write(tmp_path, own__b=claim("S.b", certified + ", " + evidence(name="t")))
    links = f"exact: [K3](../{files[0]}), [K5\\_2](../{files[1]})"
    assert f"| CERTIFIED | {links} |" in render(discover(tmp_path))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("*The idea:* A_h*X and B*Y", "*The idea:* A\\_h\\*X and B\\*Y"),
        ("*Only if*: A*X", "*Only if*: A\\*X"),
        ("First.\n\n*For a_b.* So", "First.\n\n*For a\\_b.* So"),
        ("of W * X\n* Y, and Z*", "of W \\* X\n* Y, and Z\\*"),
    ],
)
def test_what_opens_a_line_stays_emphasis(text, expected):
    assert escape(text) == expected


def test_a_file_that_cannot_be_loaded_is_refused(tmp_path):
    write(tmp_path, p__a=claim("S.a"), p__b="1/0")
    with pytest.raises(ValueError, match=r"p/b\.py: cannot be imported"):
        render(discover(tmp_path))


def test_an_experiment_that_was_not_run_shows_no_measurement(tmp_path):
    both = evidence(level="MEASURED", name="m") + ", " + evidence(name="t")
    for verdict, row in (
        ("NOT_RUN", "*not run* | not run |"),
        ("REPRODUCED", "*reproduced* | a training run, tests |"),
    ):
        write(tmp_path, p__a=claim("S.a", both, kinds="Kind.EXPERIMENT", verdict=verdict))
        assert f"| [S.a](#sa) A tiny claim: {row}" in render(discover(tmp_path))
