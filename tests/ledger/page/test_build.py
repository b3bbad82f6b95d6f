"""The report as a file: whole, without a network, its links right, its text escaped."""

import base64
import json
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from ledger.page.conftest import outcome_of, page_of

from convattn_ledger.discovery import Proof, discover
from convattn_ledger.locations import certificates_directory, proofs_directory
from convattn_ledger.page import build
from convattn_ledger.page.mathematics import anchor

pytestmark = pytest.mark.slow  # each needs a page


class Links(HTMLParser):
    """Anchors, links, and whatever a browser would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: Counter[str] = Counter()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if "id" in attributes:
            self.anchors[attributes["id"] or ""] += 1
        if tag == "a":
            self.links.append(attributes.get("href") or "")
        elif "href" in attributes:
            self.loads.append(attributes["href"] or "")
        self.loads += [attributes["src"] or ""] if "src" in attributes else []


def wrong_links(text: str) -> list[str]:
    """Links to nowhere, anchors that stand twice, and what would need a network."""
    page = Links(text)
    wrong = [link for link in page.links if link[:1] == "#" and link[1:] not in page.anchors]
    wrong += [link for link in page.links if not link.startswith(("#", "data:application/json"))]
    wrong += [name for name, count in page.anchors.items() if count > 1]
    wrong += [load for load in page.loads if not load.startswith("data:")]
    return wrong + re.findall(r"url\((?!['\"]?data:)[^)]*\)|@import[^;]*", text)


def proof_of(name: str) -> Proof:
    return next(proof for proof in discover(proofs_directory()) if proof.name == name)


def test_links_resolve_and_nothing_is_loaded(report_file: Path) -> None:
    text = report_file.read_text("utf-8")
    assert wrong_links(text) == []
    assert len(text) < 4 * 2**20
    for planted in ('<a href="#nowhere">', '<script src="https://a.b/c.js">', '<p id="main">'):
        assert wrong_links(text.replace("</main>", planted + "</main>"))


def test_a_caption_links_to_the_claims_that_the_page_has() -> None:
    depth = proof_of("S.depth")
    link = '(<a href="#s-depth">S.depth</a>)'
    assert link in page_of(outcome_of([depth])).decode()
    assert link not in page_of(outcome_of([])).decode()


def test_every_claim_stands_there_with_its_certificates(report_file: Path) -> None:
    text = report_file.read_text("utf-8")
    for proof in discover(proofs_directory()):
        assert f'id="{anchor(proof.name)}"' in text
    downloads = dict(
        re.findall(r'download="([^"]+)" href="data:application/json;base64,([^"]+)"', text)
    )
    paths = sorted(certificates_directory().glob("*.json"))
    assert sorted(downloads) == [path.name for path in paths]
    assert all(base64.b64decode(downloads[path.name]) == path.read_bytes() for path in paths)


def test_figures_hold_valid_json(report_file: Path) -> None:
    text = report_file.read_text("utf-8")
    for name in ("figure-data", "graph-data"):
        match = re.search(rf'id="{name}">(.*?)</script>', text, re.DOTALL)
        assert match
        assert json.loads(match[1])


def test_results_are_escaped_and_failures_are_shown(tmp_path: Path) -> None:
    proof = proof_of("S.finite")
    outcome = outcome_of([proof], passed=False)
    pieces = tuple(
        replace(item, detail="<script>alert(1)</script>") for item in outcome.claims[0].evidence
    )
    outcome.claims[0] = replace(outcome.claims[0], evidence=pieces)
    text = page_of(outcome).decode()
    assert "<script>alert" not in text
    assert "The evidence fails for S.finite." in text
    assert "evidence fails</strong>" in text
    assert "&lt;a device&gt;" in text


def test_badges_and_the_graph_show_what_was_reached() -> None:
    proof = proof_of("S.finite")
    verdicts = {
        True: ('data-levels="PROVED CERTIFIED', 'class="node holds proved"'),
        False: ('data-levels=""', 'class="node holds evidence-fails"'),
        None: ('data-levels=""', 'class="node holds not-run"'),
    }
    for passed, parts in verdicts.items():
        text = page_of(outcome_of([proof], passed)).decode()
        assert all(part in text for part in parts), passed
    assert "PROVED not re-checked here" in text
    assert '<strong class="muted">evidence is incomplete</strong>' in text
    assert "passes" not in text.partition('id="s-finite"')[2].partition("</p>")[0]


def test_no_path_of_the_machine_is_shown(report_file: Path) -> None:
    root = str(certificates_directory().parent)
    assert root not in report_file.read_text("utf-8")
    proof = proof_of("S.finite")
    outcome = outcome_of([proof], passed=None)
    item = replace(outcome.claims[0].evidence[0], detail=f"{root}/build/x.json is not there")
    outcome.claims[0] = replace(outcome.claims[0], evidence=(item,))
    text = page_of(outcome).decode()
    assert root not in text
    assert "build/x.json is not there" in text


def test_a_file_that_cannot_be_loaded_is_shown(tmp_path: Path) -> None:
    broken = Proof(tmp_path / "x.py", "p/x.py", problem="SyntaxError: <here>")
    text = page_of(outcome_of([broken])).decode()
    assert "SyntaxError: &lt;here&gt;" in text
    assert wrong_links(text) == []


def test_a_report_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "MAX_BYTES", 1000)
    with pytest.raises(build.TooLarge, match=r"bytes, but expected at most 1,000"):
        page_of(outcome_of([]))
