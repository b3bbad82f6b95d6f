"""Formulas in prose: no letter is lost, and what is a formula is typeset as one."""

import re
import unicodedata
from html import unescape
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convattn.ledger.discovery import discover
from convattn.ledger.locations import proofs_directory
from convattn.page.report.mathematics import inline, mentioned, paragraphs

WORDS = (" the ", "softmax", "W_qry", "e^(-α)", "S.finite", "\n")
PIECES = [*"aKαΣδ()[]{}_^+-·=≤,.;:|'*`<>&⌊⌋²ᵀ₀ 12", *WORDS]


def letters(text: str) -> list[str]:
    """Letters and digits, sorted, for indices stand before exponents in MathML."""
    plain = unicodedata.normalize("NFKC", text).replace("∑", "Σ")
    return sorted(re.findall(r"[^\W_]", plain))


def shown(html: str) -> str:
    """What a reader sees; the page must be well-formed."""
    tree = ElementTree.fromstring(f"<div>{html.replace('<wbr>', '')}</div>")
    return unescape("".join(tree.itertext()))


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a head", "a head"),
        ("K heads", "<math><mi>K</mi></math> heads"),
        ("d-dimensional, 1-D", "d-dimensional, 1-D"),
        ("x < y & z", "&lt;"),
        ("by S.finite", '<a href="#s-finite">S.finite</a>'),
        ("``W_q*X``", "<code>W_q*X</code>"),
        ("*If.* K's", "<em>If.</em>"),
        ("W_qry", '<msub><mi>W</mi><mi mathvariant="normal">qry</mi></msub>'),
        ("X_kᵀ", "<msubsup><mi>X</mi><mi>k</mi><mi>T</mi></msubsup>"),
        ("2^-53", "<msup><mn>2</mn><mrow><mo>−</mo><mn>53</mn></mrow></msup>"),
        ("the authors' code", "the authors' code"),
    ],
)
def test_examples(text: str, html: str) -> None:
    assert html in inline(text, {"S.finite"})


def test_brackets_belong_to_what_they_hold() -> None:
    assert inline("(P = 1)").startswith("<math><mo")
    assert inline("(as P = 1").startswith("(as <math><mi>P")


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_no_letter_is_lost_and_the_html_is_well_formed(text: str) -> None:
    assert letters(shown(paragraphs(text, {"S.finite"}))) == letters(text)


def test_every_statement_of_the_ledger_keeps_its_letters() -> None:
    formulas = 0
    for proof in discover(proofs_directory()):
        statement = proof.statement
        assert statement is not None
        for text in (statement.printed, statement.verified, statement.repair, statement.proof):
            html = paragraphs(text)
            assert letters(shown(html)) == letters(text), proof.name
            formulas += html.count("<math>")
    assert formulas > 2000


def test_the_letters_would_be_missed() -> None:
    assert letters(shown(inline("K ≤ 2P")).replace("P", "")) != letters("K ≤ 2P")


def test_a_claim_that_the_page_lacks_is_not_linked() -> None:
    assert inline("by S.finite") == "by S.finite"
    assert mentioned("C20.lemma1, L21 and ``S.heads``") == ["C20.lemma1"]


def test_indented_lines_are_displays_and_items_are_lists() -> None:
    html = paragraphs("So\n\n    K = 3\n\nand\n\n- one\n- two\n\nEnd.")
    assert html.count('<div class="display">') == 1
    assert html.count("<li>") == 2
    assert html.endswith("<p>End.</p>")
