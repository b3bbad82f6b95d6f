"""The report of a verification: a table of the claims, the failures in full, and the time."""

from collections.abc import Sequence
from itertools import groupby

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from convattn.ledger.claim import Level
from convattn.ledger.discovery import PAPERS
from convattn.ledger.outcome import ClaimOutcome, EvidenceOutcome
from convattn.ledger.runner import Outcome

_IN_FULL = 3  # up to so many claims, the details of all evidence are printed
_SLOWEST = 5


def print_report(console: Console, outcome: Outcome, left_out: int = 0) -> None:
    """Print a verification.

    Args:
        console: Where to.
        outcome: What was found.
        left_out: How many claims were left out because they had none of the wanted evidence.
    """
    console.print(_table(outcome.claims))
    if len(outcome.claims) <= _IN_FULL:
        for claim in outcome.claims:
            _print_details(console, claim)
    _print_failures(console, outcome.claims)
    _print_time(console, outcome)
    console.print(_summary(outcome, left_out), style="bold", highlight=False)


def _table(claims: Sequence[ClaimOutcome]) -> Table:
    table = Table(show_edge=False, pad_edge=False)
    for column in ("claim", "verdict", "levels reached", "result"):
        table.add_column(column, overflow="fold")
    table.add_column("seconds", justify="right")
    for paper, group in groupby(claims, _paper):
        table.add_section()
        table.add_row(Text(paper, "bold"), "", Text(PAPERS.get(paper, ""), "bold"))
        for claim in group:
            loaded = claim.selected.proof.claim
            result = Text("verified", "green") if claim.passed else Text("FAILED", "bold red")
            table.add_row(
                Text(f"  {claim.id}"),
                Text(str(loaded.verdict) if loaded else ""),
                _levels(claim),
                result,
                f"{claim.seconds:.2f}",
            )
    return table


def _paper(claim: ClaimOutcome) -> str:
    proof = claim.selected.proof
    return "not loaded" if proof.problem or not proof.claim else proof.claim.paper


def _levels(claim: ClaimOutcome) -> Text:
    parts = []
    for level in sorted({item.level for item in claim.evidence}, reverse=True):
        verdicts = [item.passed for item in claim.evidence if item.level is level]
        if False in verdicts:
            parts.append(Text(f"{level.name} failed", "red strike"))
        elif True in verdicts:
            parts.append(Text(level.name))
        else:
            words = "not re-checked here" if level is Level.PROVED else "not run"
            parts.append(Text(f"{level.name} {words}", "dim"))
    return Text(", ").join(parts)


def _print_details(console: Console, claim: ClaimOutcome) -> None:
    proof = claim.selected.proof
    console.print()
    console.print(Text(f"{claim.id}  {proof.claim.source if proof.claim else ''}", "bold"))
    for item in claim.evidence:
        _print_evidence(console, item)


def _print_evidence(console: Console, item: EvidenceOutcome) -> None:
    word, style = {
        True: ("passed", "green"),
        False: ("FAILED", "bold red"),
        None: ("not run here", "dim"),
    }[item.passed]
    line = Text.assemble(
        f"  {item.level.name}  {item.name}: ", (word, style), f" ({item.seconds:.2f} s)"
    )
    console.print(line)
    console.print(Padding(Text(item.detail), (0, 0, 0, 4), expand=False))
    if item.assumes:
        console.print(Padding(Text(f"assumes: {item.assumes}", "dim"), (0, 0, 0, 4), expand=False))


def _print_failures(console: Console, claims: Sequence[ClaimOutcome]) -> None:
    for claim in claims:
        for problem in claim.problems:
            console.print()
            console.print(Text(f"FAILED  {claim.id}", "bold red"))
            console.print(Text(f"  {claim.selected.proof.path}", "dim"), soft_wrap=True)
            console.print(Padding(Text(problem), (0, 0, 0, 2), expand=False))


def _print_time(console: Console, outcome: Outcome) -> None:
    timed = [(item.seconds, f"{c.id}: {item.name}") for c in outcome.claims for item in c.evidence]
    console.print()
    console.print(Text("Where the time went", "bold"))
    for seconds, name in sorted(timed, key=lambda pair: -pair[0])[:_SLOWEST]:
        console.print(Text(f"  {seconds:8.2f} s  {name}"))
    if outcome.startups:
        workers, longest = len(outcome.startups), max(outcome.startups)
        console.print(Text(f"  {longest:8.2f} s  starting workers ({workers}, the slowest)"))
    console.print(Text(f"  {sum(pair[0] for pair in timed):8.2f} s  all checks, summed"))
    console.print(Text(f"  {outcome.seconds:8.2f} s  in all, by the clock"))
    console.print()


def _summary(outcome: Outcome, left_out: int) -> str:
    evidence = [item for claim in outcome.claims for item in claim.evidence]
    passed = sum(claim.passed for claim in outcome.claims)
    counts = [(word, sum(item.passed is value for item in evidence)) for word, value in _COUNTED]
    parts = [f"{passed} of {len(outcome.claims)} claims verified"]
    parts.append("evidence: " + ", ".join(f"{count} {word}" for word, count in counts))
    if left_out:
        parts.append(f"{left_out} claims left out, having no such evidence")
    if outcome.interrupted:
        parts.append("INTERRUPTED")
    return "; ".join(parts)


_COUNTED = (("passed", True), ("failed", False), ("not run here", None))
