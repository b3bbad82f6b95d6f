"""The whole report: one HTML file that needs no network."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from convattn_ledger.coq.lock import read_lock
from convattn_ledger.coq.rules import holds_a_theorem
from convattn_ledger.coq.sources import Project, read_project
from convattn_ledger.coq.statements import Item, items
from convattn_ledger.coq.theorem_check import read_report
from convattn_ledger.discovery import PAPERS
from convattn_ledger.locations import checkout, coq_directory, prove_report
from convattn_ledger.page.claims import claim_sections, errata_pages, item_anchor, reader_table
from convattn_ledger.page.figure_data import figure_data
from convattn_ledger.page.graph import CLAIM_ROWS, build_graph, draw, file_anchor
from convattn_ledger.page.mathematics import anchor, mentioned
from convattn_ledger.page.not_run import not_run
from convattn_ledger.report import summary
from convattn_ledger.runner import Options, Outcome

STYLES = ("style.css", "report.css")
SCRIPTS = (
    *("attention.js", "heads.js", "depth.js", "drawing.js"),
    *("figures.js", "compiled.js", "report.js"),
)
MAX_BYTES = 4 * 2**20


class TooLarge(ValueError):
    """The report would be too large for a page."""


def report_page(outcome: Outcome, options: Options, environment: Mapping[str, Any]) -> bytes:
    """The report of a verification.

    Args:
        outcome: What became of the claims.
        options: How it was run; the certificates are those of its folder.
        environment: Versions, device and options, as in the JSON of ``convattn verify``.

    Returns:
        An HTML file in UTF-8.

    Raises:
        TooLarge: If it would be larger than 4 MiB.
    """
    project = read_project(coq_directory())
    known = items(project)
    lock = read_lock(project) or {"theorems": {}, "definitions": {}}
    reached = {file: entry["definitions"] for file, entry in lock["theorems"].items()}
    claims = [result for result in outcome.claims if result.selected.proof.claim is not None]
    graph = build_graph(claims, project, known)
    assets = files("convattn_ledger.page") / "assets"
    template = (assets / "report.html").read_text("utf-8")
    text = Template(_link_captions(template, {result.id for result in claims})).substitute(
        style="".join((assets / name).read_text("utf-8") for name in STYLES),
        scripts="\n".join((assets / name).read_text("utf-8") for name in SCRIPTS),
        summary=_summary(outcome),
        not_run=not_run(outcome, environment),
        table=reader_table(outcome.claims),
        claim_graph=draw(graph.of_claims(), list(PAPERS), "alone", CLAIM_ROWS),
        graph=draw(graph, list(PAPERS), "whole", len(graph.nodes)),
        uses=_json({name: sorted(edges) for name, edges in graph.uses.items()}),
        claims=claim_sections(outcome.claims, options.certificates, reached, _uses(known)),
        errata=errata_pages(claims),
        sources=_sources(project, known, reached),
        environment=_environment(environment, lock),
        figures=_json(figure_data()),
    )
    root = checkout()
    page = (text.replace(f"{root}/", "") if root else text).encode()
    if len(page) > MAX_BYTES:
        raise TooLarge(
            f"the report would have {len(page):,} bytes, but expected at most {MAX_BYTES:,}: "
            "leave claims out with --claim, or shorten the statements"
        )
    return page


def _link_captions(page: str, claims: Set[str]) -> str:
    """The page, with a link wherever a caption names a claim that it has."""

    def linked(caption: re.Match[str]) -> str:
        text = caption[0]
        for name in claims & set(mentioned(text)):
            link = f'<a href="#{anchor(name)}">{name}</a>'
            text = re.sub(rf"\b{re.escape(name)}\b", link, text)
        return text

    return re.sub("<figcaption.*?</figcaption>", linked, page, flags=re.DOTALL)


def _json(value: Any) -> str:
    """JSON that may stand inside a script element."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def _uses(known: Mapping[tuple[str, str], Item]) -> dict[str, list[tuple[str, str]]]:
    """For each file, what it uses of others, in the order of the files."""
    uses_of: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for item in known.values():
        uses_of[item.file] |= {use for use in item.uses if use[0] != item.file}
    return {file: sorted(uses) for file, uses in uses_of.items()}


def _summary(outcome: Outcome) -> str:
    *_, counts = summary(outcome, 0)
    failing = [result.id for result in outcome.claims if result.result == "fails"]
    state = f" The evidence fails for {', '.join(failing)}." if failing else ""
    return f"<p>{escape(f'{counts}.{state}')}</p>"


def _sources(
    project: Project,
    known: Mapping[tuple[str, str], Item],
    reached: Mapping[str, Sequence[str]],
) -> str:
    """Every definition and lemma that theorems share, by file."""
    uses = Counter(name for names in reached.values() for name in names)
    by_file: dict[str, list[Item]] = defaultdict(list)
    for item in known.values():
        by_file[item.file].append(item)
    sections = []
    for file in project.files:
        items, parts = by_file[file], []
        for item in items:
            count = uses[project.qualified(file, item.name)]
            note = f'<p class="muted">reached by {count} statements</p>' if count else ""
            spans = "".join(f'<span id="{item_anchor(file, n)}"></span>' for n in item.fields)
            place = item_anchor(file, item.name)
            code = f"<pre><code>{escape(item.text)}</code></pre>"
            parts.append(f'<div id="{place}">{spans}{code}{note}</div>')
        kind = "theorem" if holds_a_theorem(file) else "lemmas"
        sections.append(
            f'<details id="{file_anchor(file)}"><summary><code>{escape(file)}</code> '
            f"({kind}, {len(items)} items)</summary><div>{''.join(parts)}</div></details>"
        )
    return "\n".join(sections)


def _checked(proved: Mapping[str, Any]) -> str:
    """What `convattn prove` last checked, in words."""
    entries = proved["theorems"].values()
    checked = sum(bool(entry["checked"]) for entry in entries)
    return f"{checked} of {len(entries)} theorems, by convattn prove"


def _environment(environment: Mapping[str, Any], lock: Mapping[str, Any]) -> str:
    rows = []
    path = prove_report()
    proved = None if path is None else read_report(path)
    asked = environment["options"]
    facts = {name: value for name, value in environment.items() if name != "options"}
    facts |= {
        "seconds": round(environment["seconds"], 1),
        "claims asked for": ", ".join(asked.get("claims", [])) or "all",
        "levels asked for": ", ".join(asked.get("levels", [])) or "all",
        "worker processes": asked["jobs"] or "one a core",
        "certificates": Path(asked["certificates"]).name,
        "Coq": "no report of convattn prove" if proved is None else proved["versions"]["coq"],
        "theorems": "none" if proved is None else _checked(proved),
    }
    for name, value in facts.items():
        rows.append(f"<tr><th scope=row>{escape(name)}</th><td>{escape(str(value))}</td></tr>")
    locked = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td><code>{escape(value[:16])}…</code></td></tr>"
        for name, value in lock["definitions"].items()
    )
    return (
        '<div class="table" tabindex="0" role="region" aria-label="Environment"><table><tbody>'
        f"{''.join(rows)}</tbody></table></div><details><summary>The lock of the definitions "
        f"({len(lock['definitions'])}, the first 16 digits of each SHA-256)</summary>"
        f'<div class="table" tabindex="0" role="region" aria-label="Lock"><table><tbody>{locked}'
        "</tbody></table></div></details>"
    )
