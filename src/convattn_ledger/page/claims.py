"""The claims as HTML: what was printed, what is true, on what evidence; and the errata."""

import base64
from collections.abc import Collection, Mapping, Sequence
from html import escape
from itertools import groupby
from pathlib import Path

from convattn_ledger.claim import Claim, Evidence, Level, Verdict
from convattn_ledger.coq.axioms import stated
from convattn_ledger.coq.theorem_check import TheoremCheck
from convattn_ledger.discovery import PAPERS, Statement
from convattn_ledger.document import WORDS
from convattn_ledger.page.graph import file_anchor
from convattn_ledger.page.mathematics import anchor, inline, paragraphs
from convattn_ledger.runner import ClaimOutcome, EvidenceOutcome

BADGES = {True: "passed", False: "failed", None: "not-run"}
MAX_DETAIL = 5000  # characters
RESULTS = {True: "passed", False: "FAILED", None: "not run here"}


def reader_table(outcomes: Sequence[ClaimOutcome]) -> str:
    """A row for each claim and what it is shown by; first those with the strongest evidence."""
    rows: list[tuple[tuple[int, ...], str, str]] = []
    for outcome in outcomes:
        claim, statement = outcome.selected.proof.claim, outcome.selected.proof.statement
        if claim is None or statement is None:
            order = (True, len(WORDS) + 1)
            rows.append((order, escape(outcome.id), '<span class="failed">not loaded</span>'))
            continue
        title = inline(statement.title.removeprefix(f"{claim.id}: ").rstrip("."))
        levels = {} if claim.verdict is Verdict.NOT_RUN else outcome.levels
        ranks = [rank for rank, level in enumerate(WORDS) if levels.get(level)]
        parts = [", ".join(words for level, words in WORDS.items() if levels.get(level))]
        parts += [
            f'<span class="{BADGES[passed]}">{outcome.level_words(level)}</span>'
            for level, passed in levels.items()
            if not passed
        ]
        rows.append(
            (
                (outcome.result == "fails", *ranks, len(WORDS)),
                f'<a href="#{anchor(claim.id)}">{claim.id}</a> <em>{claim.verdict}</em>: {title}',
                "; ".join(filter(None, parts)) or "not run",
            )
        )
    rows.sort(key=lambda row: row[0])
    return "".join(f"<tr><td>{what}</td><td>{shown}</td></tr>" for _, what, shown in rows)


def claim_sections(
    outcomes: Sequence[ClaimOutcome],
    certificates: Path,
    reached: Mapping[str, Sequence[str]],
    uses: Mapping[str, Sequence[tuple[str, str]]],
) -> str:
    """Every claim, by paper.

    `reached` has the definitions that the statement of each Coq file reaches, by their full names;
    `uses` the file and name of what its proofs use of other files.
    """
    known = {outcome.id for outcome in outcomes}
    sections = []
    for paper, group in groupby(outcomes, lambda outcome: outcome.id.partition(".")[0]):
        title = PAPERS.get(paper, "files that could not be loaded")
        sections.append(f'<section class="paper" data-paper="{escape(paper)}">')
        sections.append(f"<h3>{escape(paper)}: {escape(title)}</h3>")
        for outcome in group:
            proof = outcome.selected.proof
            if proof.claim is None or proof.statement is None:
                sections.append(_broken(outcome))
                continue
            theorems = [
                _theorem(item, reached, uses)
                for item in proof.claim.evidence
                if isinstance(item.check, TheoremCheck)
            ]
            body = _claim(proof.claim, proof.statement, proof.label, known)
            body += [*theorems, _evidence(outcome), _certificates(proof.claim.id, certificates)]
            sections.append(_section(proof.claim, proof.statement, outcome, body))
        sections.append("</section>")
    return "\n".join(sections)


def _section(claim: Claim, statement: Statement, outcome: ClaimOutcome, body: Sequence[str]) -> str:
    verdict = str(claim.verdict)
    names = [level.name for level, passed in outcome.levels.items() if passed]
    badges = "".join(
        f'<span class="level {BADGES[passed]}">{outcome.level_words(level)}</span>'
        for level, passed in outcome.levels.items()
    )
    kind = "failed" if outcome.result == "fails" else "muted"
    state = f'<strong class="{kind}">evidence {outcome.result}</strong>'
    state = "" if outcome.result == "passes" else state
    return (
        f'<article class="claim" id="{anchor(claim.id)}" data-id="{claim.id}" '
        f'data-verdict="{verdict}" data-levels="{" ".join(names)}">'
        f'<h4><a href="#{anchor(claim.id)}">{claim.id}</a> {inline(statement.title)}</h4>'
        f'<p class="badges"><span class="verdict {verdict.replace(" ", "-")}">{verdict}</span>'
        f"{badges}{state}</p>{''.join(body)}</article>"
    )


def _broken(outcome: ClaimOutcome) -> str:
    problems = "".join(f"<pre>{escape(problem)}</pre>" for problem in outcome.problems)
    return (
        f'<article class="claim" data-id="{escape(outcome.id)}" data-verdict="" data-levels="">'
        f"<h4>{escape(outcome.id)}</h4>{problems}</article>"
    )


def _claim(claim: Claim, statement: Statement, label: str, known: Collection[str]) -> list[str]:
    kinds = ", ".join(claim.kinds)
    parts = [
        f"<p><b>Claimed.</b> {inline(statement.claimed, known)}<br>"
        f"<b>True.</b> {inline(statement.true, known)}</p>",
        f'<p class="muted">{inline(claim.source)}. Kinds: {kinds}. '
        f"File: <code>proofs/{escape(label)}</code>.</p>",
    ]
    sections = [
        ("Printed", statement.printed),
        (claim.verdict.heading, statement.verified),
        ("Repair", statement.repair),
    ]
    parts += [f"<h5>{name}</h5>{paragraphs(text, known)}" for name, text in sections]
    parts.append(_folded("Proof", paragraphs(statement.proof, known)))
    return parts


def _folded(title: str, html: str) -> str:
    return f"<details><summary>{title}</summary><div>{html}</div></details>"


def _theorem(
    item: Evidence,
    reached: Mapping[str, Sequence[str]],
    uses: Mapping[str, Sequence[tuple[str, str]]],
) -> str:
    check = item.check
    assert isinstance(check, TheoremCheck)
    assert item.theorem is not None
    file = check.file
    definitions = ", ".join(
        f'<a href="#{item_anchor(*_split(full))}"><code>{escape(_split(full)[1])}</code></a>'
        for full in reached.get(file, ())
    )
    lemmas = ", ".join(
        f'<a href="#{item_anchor(other, name)}"><code>{escape(name)}</code></a>'
        for other, name in uses.get(file, ())
    )
    covers = f"<p>It covers: {inline(item.covers)}.</p>" if item.covers else ""
    return _folded(
        f"Coq: <code>{escape(file)}</code>",
        f"{covers}<pre><code>{escape(item.theorem())}</code></pre>"
        f"<p>Assumptions: {escape(stated(file))}.</p>"
        f"<p>Its statement reaches: {definitions or 'no definition of ours'}.</p>"
        f"<p>Its proof uses: {lemmas or 'libraries alone'}.</p>"
        f"<p>Check it: <code>convattn prove {escape(file)}</code></p>",
    )


def _split(name: str) -> tuple[str, str]:
    """File and short name of a full name such as ``Convattn.foundation.rank.family_rank``."""
    *folders, short = name.split(".")[1:]
    return "/".join(folders) + ".v", short


def item_anchor(file: str, name: str) -> str:
    """The anchor of a definition or lemma.

    Example:
        >>> item_anchor("foundation/rank.v", "family_rank")
        'coq-foundation-rank.family_rank'
    """
    return f"{file_anchor(file)}.{name}"


def _evidence(outcome: ClaimOutcome) -> str:
    ordered = sorted(outcome.evidence, key=lambda item: -item.evidence.level)
    rows = "".join(map(_evidence_row, ordered))
    command = f"convattn verify --claim {outcome.id}"
    return (
        "<details><summary>Evidence</summary><div>"
        '<div class="table" tabindex="0" role="region" aria-label="Evidence for '
        f'{outcome.id}"><table><thead><tr><th>level</th><th>evidence</th><th>result</th>'
        f"<th>assumes</th><th>seconds</th></tr></thead><tbody>{rows}</tbody></table></div>"
        f"<p>Run it again: <code>{command}</code></p></div></details>"
    )


def _evidence_row(item: EvidenceOutcome) -> str:
    covers = f" <em>covers: {inline(item.evidence.covers)}</em>" if item.evidence.covers else ""
    name = inline(item.evidence.name)
    if isinstance(item.evidence.check, TheoremCheck):
        name = f"<code>{escape(item.evidence.check.file)}</code>"
    said = item.detail
    detail = escape(said if len(said) <= MAX_DETAIL else f"{said[:MAX_DETAIL]} …")
    return (
        f"<tr><td>{Level(item.evidence.level).name}</td>"
        f"<td>{name}{covers}</td>"
        f"<td><strong>{RESULTS[item.passed]}</strong>: {detail}</td>"
        f"<td>{inline(item.evidence.assumes or 'nothing further')}</td>"
        f"<td>{item.seconds:.1f}</td></tr>"
    )


def _certificates(claim: str, folder: Path) -> str:
    links = []
    for path in sorted(folder.glob(f"{claim}-*.json")):
        content = base64.b64encode(path.read_bytes()).decode()
        links.append(
            f'<li><a download="{escape(path.name)}" '
            f'href="data:application/json;base64,{content}">{escape(path.name)}</a></li>'
        )
    if not links:
        return ""
    return _folded(
        f"Certificates ({len(links)})",
        f"<ul>{''.join(links)}</ul><p>Check one with Python alone: "
        "<code>python -m convattn_check FILE</code></p>",
    )


def errata_pages(outcomes: Sequence[ClaimOutcome]) -> str:
    """The errata, one page for each paper, with a button that prints that page alone."""
    known = {outcome.id for outcome in outcomes}
    pages = []
    for paper, group in groupby(outcomes, lambda outcome: outcome.id.partition(".")[0]):
        rows = []
        for outcome in group:
            statement = outcome.selected.proof.statement
            for item in statement.errata if statement else ():
                cells = (item.where, item.printed, item.correction)
                ids = ", ".join(inline(name, known) for name in (outcome.id, *item.further))
                texts = "".join(f"<td>{inline(cell)}</td>" for cell in cells)
                rows.append(f"<tr>{texts}<td>{ids}</td></tr>")
        if rows:
            pages.append(
                f'<article class="errata" id="errata-{paper.lower()}">'
                f"<h3>Errata of {escape(PAPERS.get(paper, paper))} ({escape(paper)})</h3>"
                '<p class="screen scripted" hidden><button type="button" '
                f'data-print="errata-{paper.lower()}">Print this page</button></p>'
                f'<div class="table" tabindex="0" role="region" aria-label="Errata of {paper}">'
                "<table><thead><tr><th>where</th><th>printed</th><th>should be</th><th>claim</th>"
                f"</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
                '<p class="muted">Each correction is a claim of convattn, with its proof, evidence '
                "and certificates. An entry without a mark is an error. Misprint: the argument "
                "around it stands. Sharper: the print is true, and more is proved. Remark: it is "
                "incomplete or unclear.</p></article>"
            )
    return "\n".join(pages)
