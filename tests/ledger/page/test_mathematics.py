"""Formulas in prose: no letter is lost, and what is a formula is typeset as one."""

import re
import unicodedata
from html import unescape
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convattn_ledger.discovery import discover
from convattn_ledger.locations import proofs_directory
from convattn_ledger.page.mathematics import inline, mentioned, paragraphs

WORDS = (" the ", "softmax", "W_qry", "e^(-α)", "S.finite", "\n")
PIECES = [*"aKαΣδ()[]{}_^+-·=≤,.;:|'*`<>&⌊⌋²ᵀ₀ 12", *WORDS]


def letters(text: str) -> list[str]:
    """Letters and digits, sorted, for indices stand before exponents in MathML."""
    plain = unicodedata.normalize("NFKC", text).replace("∑", "Σ")
    return sorted(re.findall(r"[^\W_]", plain))


def visible_text(html: str) -> str:
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
        ("e^(-α|(k-q) - Δ|²)", "<msup><mi>e</mi><mrow>"),
        ("b_(|i-r|, |j-t|)", "<msub><mi>b</mi><mrow>"),
        ("A'_k'", "<msubsup><mi>A</mi><mrow><mi>k</mi><mo>′</mo></mrow><mo>′</mo></msubsup>"),
        ("P'c ≥ 1", "<msup><mi>P</mi><mo>′</mo></msup><mi>c</mi>"),
        ("δ_1δ_2", "<msub><mi>δ</mi><mn>1</mn></msub><msub><mi>δ</mi><mn>2</mn></msub>"),
        ("hD_h + 1", "<mi>h</mi><msub><mi>D</mi><mi>h</mi></msub>"),
        ("Θ⁽¹⁾_kp", "<msubsup><mi>Θ</mi><mrow><mi>k</mi><mi>p</mi></mrow>"),
        ("Ŵ_keyᵀ", '<mi mathvariant="normal">key</mi><mi>T</mi>'),
        ("Σ_h a_h", "<msub><mo>∑</mo><mi>h</mi></msub>"),
        ("(Σ⁻¹Δ)_2", "<msup><mi>Σ</mi>"),
        ("-½x", "<mo>−</mo><mn>½</mn>"),
        ("H_Y,c = 0", "<mi>Y</mi><mo>,</mo><mi>c</mi>"),
        ("(3) K is odd", "(3) <math><mi>K</mi></math>"),
        ("12.1M parameters", "12.1M parameters"),
        ("appendix E", "appendix E"),
    ],
)
def test_examples(text: str, html: str) -> None:
    assert html in inline(text, {"S.finite"})


def test_brackets_belong_to_what_they_hold() -> None:
    assert inline("(P = 1)").startswith("<math><mo")
    assert inline("(as P = 1").startswith("(as <math><mi>P")


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_no_letter_is_lost_and_the_html_is_well_formed(text: str) -> None:
    assert letters(visible_text(paragraphs(text, {"S.finite"}))) == letters(text)


@pytest.mark.slow
def test_every_statement_of_the_ledger_keeps_its_letters() -> None:
    formulas = 0
    for proof in discover(proofs_directory()):
        statement = proof.statement
        assert statement is not None
        for text in (statement.printed, statement.verified, statement.repair, statement.proof):
            html = paragraphs(text)
            assert letters(visible_text(html)) == letters(text), proof.name
            formulas += html.count("<math>")
    assert formulas > 2000


def left_over(text: str) -> list[str]:
    """What still looks like mathematics beside the formulas and the code of a text's HTML."""
    html = re.sub(r"<math>.*?</math>|<code>.*?</code>", "¤", paragraphs(text))
    return re.findall(r".{,20}(?:[_^⁰¹²³⁴-⁹ᵀ⁽₀-₉]|¤'|'¤).{,20}", re.sub("<[^>]*>", "", html))


@pytest.mark.slow
def test_no_script_is_left_beside_a_formula() -> None:
    for proof in discover(proofs_directory()):
        statement = proof.statement
        texts = [statement.title, statement.printed, statement.verified, statement.repair]
        texts += [statement.proof, *(item.covers for item in proof.claim.evidence)]
        texts += [part for e in statement.errata for part in (e.where, e.printed, e.correction)]
        assert [leftover for text in texts for leftover in left_over(text)] == [], proof.name
    assert left_over("the head h_")
    assert left_over("the ᵀ of words")


def test_a_claim_that_the_page_lacks_is_not_linked() -> None:
    assert inline("by S.finite") == "by S.finite"
    assert mentioned("C20.lemma1, L21 and ``S.heads``") == ["C20.lemma1"]


def test_indented_lines_are_displays_and_items_are_lists() -> None:
    html = paragraphs("So\n\n    K = 3\n\nand\n\n- one\n- two\n\nEnd.")
    assert html.count('<div class="display">') == 1
    assert html.count("<li>") == 2
    assert html.endswith("<p>End.</p>")
