import subprocess
import sys

import pytest

from convattn_ledger.discovery import discover, parse_statement
from convattn_ledger.locations import certificates_directory, checkout, proofs_directory
from ledger.proof_files import DOCSTRING, claim, write


def test_claims_come_in_the_order_of_the_ledger(tmp_path):
    ids = ["S.finite", "X9.a", "B19.sac", "C20.eq10", "C20.eq9", "A19.grid", "L21.wo"]
    write(tmp_path, **{f"paper__n{n}": claim(id) for n, id in enumerate(ids)})
    expected = ["C20.eq9", "C20.eq10", "L21.wo", "A19.grid", "B19.sac", "S.finite", "X9.a"]
    assert [proof.name for proof in discover(tmp_path)] == expected


def test_private_files_and_coq_are_no_claims(tmp_path):
    write(tmp_path, p__a=claim("S.a"), p___shared="1/0", coq__x="1/0", _private="1/0")
    (tmp_path / "__init__.py").write_text("1/0")
    write(tmp_path / "coq" / "deeper", x="1/0")
    write(tmp_path / "p" / "__pycache__", x="1/0")
    assert [proof.label for proof in discover(tmp_path)] == ["p/a.py"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("import nowhere_to_be_found", "ModuleNotFoundError"),
        ("def broken(:", "SyntaxError"),
        ("raise SystemExit(0)", "SystemExit"),
        ("1/0", "ZeroDivisionError"),
        (DOCSTRING, "defines CLAIM=None"),
        (f"{DOCSTRING}\nCLAIM = 'C20.lemma1'", "expected a convattn_ledger.Claim"),
        (claim("S.x").replace("Proof. By reflexivity.", ""), "lacks Proof"),
        (claim("S.x").removeprefix(DOCSTRING), "lacks Claimed and True and Printed"),
        (claim("S.x", kinds="Kind.LIMIT"), "expected ENCLOSED, BOUNDED for the kind limit"),
        (claim("S.x", top="from a import CLAIM"), "ModuleNotFoundError"),
        (claim("S.a"), "the id S.a is already taken by p/a.py"),
    ],
)
def test_a_file_that_is_no_proof_is_kept_with_the_problem(tmp_path, text, problem):
    write(tmp_path, p__a=claim("S.a"), p__bad=text)
    good, bad = discover(tmp_path)
    assert (good.name, good.problem) == ("S.a", "")
    assert (bad.name, bad.label) == ("p/bad.py", "p/bad.py")
    assert problem in bad.problem


@pytest.mark.parametrize("name", ["stray", "p__deeper__stray"])
def test_a_misplaced_file_is_a_problem_and_not_overlooked(tmp_path, name):
    write(tmp_path, **{name: claim("S.a")})
    (proof,) = discover(tmp_path)
    assert "one folder a paper" in proof.problem


def test_a_missing_directory_is_refused(tmp_path):
    with pytest.raises(NotADirectoryError):
        discover(tmp_path / "nowhere")


def test_the_checkout_is_recognised_by_its_project(tmp_path):
    package = tmp_path / "src" / "convattn"
    package.mkdir(parents=True)
    assert checkout(package) is None
    assert proofs_directory(package) == package / "_proofs"
    assert certificates_directory(package) == package / "_certificates"
    project = tmp_path / "pyproject.toml"
    for text in ("[project]\nname = 'another'", "not toml at all [", "[tool.x]", "project = 3"):
        project.write_text(text)
        assert checkout(package) is None
    project.write_text("[project]\nname = 'convattn'")
    assert checkout(package) == tmp_path
    assert proofs_directory(package) == tmp_path / "proofs"
    assert certificates_directory(package) == tmp_path / "certificates"


def test_importing_the_ledger_loads_neither_jax_nor_numpy():
    code = """
import sys
import convattn_ledger, convattn_ledger.runner, convattn_ledger.report
import convattn_ledger.document, convattn_ledger.json_report, convattn.cli
sys.exit(bool({"jax", "jaxlib", "numpy"} & set(sys.modules)))
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


PLAIN = """Title line.
More of it.

Claimed. A plain sentence.
True. Another one.

Printed. What the paper says.

    A = B

Verified. What is true.

Repair. What changed.

Proof. Why."""


def test_the_sections_of_a_docstring():
    statement = parse_statement(PLAIN)
    assert statement.title == "Title line.\nMore of it."
    assert (statement.claimed, statement.true) == ("A plain sentence.", "Another one.")
    assert statement.printed == "What the paper says.\n\n    A = B"
    assert statement.verified == "What is true."
    assert statement.repair == "What changed."
    assert statement.proof == "Why."
    below = PLAIN.replace("Proof. Why.", "Proof:\nBelow.")
    assert parse_statement(below).proof == "Below."


def test_nothing_to_repair_may_stand_for_the_repair():
    for repair in ("Nothing to repair.", "Nothing to repair. The sign is a convention."):
        assert parse_statement(PLAIN.replace("Repair. What changed.", repair)).repair == repair


def test_a_sentence_that_begins_with_a_name_is_no_heading():
    text = PLAIN.replace("What is true.", "What is true.\nProof of this needs care.")
    assert parse_statement(text).verified == "What is true.\nProof of this needs care."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *(
            (PLAIN.replace(f"{name}. ", "Elsewhere. "), f"lacks {name}")
            for name in ("Claimed", "True", "Printed", "Verified", "Repair", "Proof")
        ),
        (PLAIN.replace("Proof. Why.", "Proof."), "lacks Proof"),
        (PLAIN.replace("Another one.", "word " * 50), "section True has more than 220 characters"),
        (f"{PLAIN}\n\nProof. Again.", "'Proof' twice"),
        (f"{PLAIN}\n\nNothing to repair.", "'Repair' twice"),
    ],
)
def test_sections_that_are_refused_by_name(text, message):
    with pytest.raises(ValueError, match=message):
        parse_statement(text)
