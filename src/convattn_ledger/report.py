"""The report of a verification: its progress, a table of the claims, the failures, and the time."""

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby

from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from convattn_ledger.claim import Level, Verdict
from convattn_ledger.discovery import PAPERS, Proof
from convattn_ledger.journal import CONTINUED
from convattn_ledger.runner import ClaimOutcome, EvidenceOutcome, Outcome

_IN_FULL = 3  # up to so many claims, everything about each is printed
_SLOWEST = 5
SECONDS_BEFORE_COUNTS, SECONDS_BETWEEN_COUNTS = 3.0, 10.0
_COUNTED = (("passed", True), ("failed", False), ("not run here", None))
_STYLE = {"passes": "green", "fails": "bold red", "is incomplete": "bold yellow"}
_STATE = {
    True: ("passed", "green"),
    False: ("FAILED", "bold red"),
    None: ("not run here", "dim"),
}


class Display:
    """What the runner reports to; on its own it prints lines.

    One line for each finished claim, and every ten seconds how many checks have run.
    """

    def __init__(self, console: Console) -> None:
        self._console, self._count = console, "reading the claims"

    def print_count(self) -> None:
        """Print how many checks have run."""
        self._console.print(self._count, soft_wrap=True)

    def finished(self, claim: ClaimOutcome) -> None:
        """All evidence for a claim has run."""
        line = f"{claim.seconds:7.2f} s  {claim.id}: evidence {claim.result}"
        self._console.print(Text(line, "" if claim.passed else "bold"), soft_wrap=True)

    def progressed(self, name: str, done: int, total: int) -> None:
        """One more piece of evidence has run; none yet if ``done`` is 0."""
        self._count = f"{done} of {total} checks"
        if not done:
            self.print_count()


class _Bar(Display):
    def __init__(self, console: Console, progress: Progress) -> None:
        super().__init__(console)
        self._progress = progress
        self._task = progress.add_task("starting", total=None)

    def finished(self, claim: ClaimOutcome) -> None:
        if not claim.passed:
            super().finished(claim)

    def progressed(self, name: str, done: int, total: int) -> None:
        self._progress.update(self._task, description=name, completed=done, total=total)


@contextmanager
def display(console: Console) -> Iterator[Display]:
    """Progress on this console while the verification runs: a bar on a terminal, else lines.

    Reading the claims takes seconds on a busy machine, so the display begins before it.
    """
    if not console.is_terminal:
        lines, ended = Display(console), threading.Event()

        def count() -> None:
            seconds = SECONDS_BEFORE_COUNTS
            while not ended.wait(seconds):
                lines.print_count()
                seconds = SECONDS_BETWEEN_COUNTS

        counting = threading.Thread(target=count, daemon=True)
        counting.start()
        try:
            yield lines
        finally:
            ended.set()
            counting.join()
        return
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Bar(console, progress)


def print_report(console: Console, outcome: Outcome, left_out: int = 0) -> None:
    """Print a verification."""
    if len(outcome.claims) <= _IN_FULL:
        for claim in outcome.claims:
            _print_claim(console, claim)
    console.print(_table(outcome.claims))
    _print_failures(console, outcome.claims)
    _print_time(console, outcome)
    for line in summary(outcome, left_out):
        console.print(Text(line, "bold"), soft_wrap=True)


def _table(claims: Sequence[ClaimOutcome]) -> Table:
    table = Table(show_edge=False, pad_edge=False)
    for column in ("claim", "verdict", "levels reached", "result"):
        table.add_column(column, overflow="fold")
    table.add_column("seconds", justify="right")
    for paper, group in groupby(claims, lambda claim: _paper(claim.selected.proof)):
        table.add_section()
        table.add_row(Text(paper, "bold"), "", Text(PAPERS.get(paper, ""), "bold"))
        for claim in group:
            loaded = claim.selected.proof.claim
            table.add_row(
                Text(f"  {claim.id}"),
                Text(str(loaded.verdict) if loaded else ""),
                _levels(claim),
                Text(f"evidence {claim.result}", _STYLE[claim.result]),
                f"{claim.seconds:.2f}",
            )
    return table


def _paper(proof: Proof) -> str:
    return "not loaded" if proof.problem or not proof.claim else proof.claim.paper


def _levels(claim: ClaimOutcome) -> Text:
    styles = {True: "", False: "red strike", None: "dim"}
    parts = [
        Text(claim.level_words(level), styles[passed]) for level, passed in claim.levels.items()
    ]
    return Text(", ").join(parts)


def _print_claim(console: Console, outcome: ClaimOutcome) -> None:
    """The statement, the repair, the proof, the theorem and the evidence, in that order."""
    claim, statement = outcome.selected.proof.claim, outcome.selected.proof.statement
    if claim is None or statement is None:
        return
    console.print(Text(f"{claim.id}  {claim.source}", "bold"))
    console.print(Text(f"{statement.title}\nVerdict: {claim.verdict}"))
    sections = [
        ("Claimed", statement.claimed),
        ("True", statement.true),
        ("As printed", statement.printed),
        (claim.verdict.heading, statement.verified),
        ("Repair", statement.repair),
        ("Proof", statement.proof),
    ]
    sections += [("Coq theorem", piece.theorem()) for piece in claim.evidence if piece.theorem]
    for heading, text in sections:
        console.print(Text(f"\n{heading}", "bold"))
        console.print(Text(text))
    console.print(Text("\nEvidence", "bold"))
    for item in outcome.evidence:
        _print_evidence(console, item)
    console.print()


def _print_evidence(console: Console, item: EvidenceOutcome) -> None:
    piece = item.evidence
    line = f"  {piece.level.name}  {piece.name}: "
    console.print(Text.assemble(line, _STATE[item.passed], f" ({item.seconds:.2f} s)"))
    _print_indented(console, item.detail, 4)
    for name, text in (("covers", piece.covers), ("assumes", piece.assumes)):
        if text:
            _print_indented(console, f"{name}: {text}", 4, "dim")


def _print_indented(console: Console, text: str, columns: int, style: str = "") -> None:
    console.print(Padding(Text(text, style), (0, 0, 0, columns), expand=False))


def _print_failures(console: Console, claims: Sequence[ClaimOutcome]) -> None:
    for claim in claims:
        for problem in claim.problems:
            console.print()
            console.print(Text(f"{claim.id}: evidence {claim.result}", _STYLE[claim.result]))
            console.print(Text(f"  {claim.selected.proof.path}", "dim"), soft_wrap=True)
            _print_indented(console, problem, 2)


def _print_time(console: Console, outcome: Outcome) -> None:
    timed = [
        (item.seconds, f"{claim.id}: {item.evidence.name}")
        for claim in outcome.claims
        for item in claim.evidence
    ]
    lines = sorted(timed, key=lambda pair: -pair[0])[:_SLOWEST]
    if outcome.startups:
        workers = len(outcome.startups)
        lines.append((max(outcome.startups), f"starting workers ({workers}, the slowest)"))
    lines.append((sum(seconds for seconds, _ in timed), "all checks, summed"))
    lines.append((outcome.seconds, "in all, by the clock"))
    console.print()
    console.print(Text("Where the time went", "bold"))
    for seconds, name in lines:
        console.print(Text(f"  {seconds:8.2f} s  {name}"))
    console.print()


def summary(outcome: Outcome, left_out: int) -> Iterator[str]:
    """What failed or was not run; on the last line, the verdicts and the evidence counted."""
    results = Counter(claim.result for claim in outcome.claims)
    if results["fails"]:
        yield f"The evidence for {results['fails']} of {len(outcome.claims)} claims fails."
    missing = level_counts(
        level
        for claim in outcome.claims
        if claim.result == "is incomplete"
        for level, passed in claim.levels.items()
        if passed is None
    )
    if missing:
        yield (
            f"{'Nothing failed. ' if outcome.passed else ''}Levels not run here, or not in full, "
            f"of {results['is incomplete']} of {len(outcome.claims)} claims: {missing}."
        )
    details = [item.detail for claim in outcome.claims for item in claim.evidence]
    earlier = sum(detail.startswith(CONTINUED) for detail in details)
    if earlier:
        yield (
            f"{earlier} of {len(details)} checks had passed in a verification that was ended; "
            "--restart runs all."
        )
    if left_out:
        yield f"{left_out} claims left out: they have no such evidence."
    if outcome.interrupted:
        yield "INTERRUPTED"
    elif not outcome.ran:
        yield "None of the evidence was run."
    loaded = [claim.selected.proof for claim in outcome.claims]
    verdicts = Counter(
        "could not be loaded" if proof.problem or not proof.claim else proof.claim.verdict
        for proof in loaded
    )
    counted = ", ".join(
        f"{verdicts[word]} {'hold' if word == 'holds' and verdicts[word] > 1 else word}"
        for word in (*Verdict, "could not be loaded")
        if verdicts[word]
    )
    passed = [item.passed for claim in outcome.claims for item in claim.evidence]
    evidence = ", ".join(f"{passed.count(value)} {word}" for word, value in _COUNTED)
    claims = "1 claim" if len(loaded) == 1 else f"{len(loaded)} claims"
    yield f"{claims}, verdicts: {counted}; evidence: {evidence}"


def level_counts(levels: Iterable[Level]) -> str:
    """How often each level occurs, the strongest first.

    >>> level_counts([Level.TESTED, Level.PROVED, Level.TESTED])
    'PROVED (1), TESTED (2)'
    """
    counts = Counter(levels)
    return ", ".join(f"{level.name} ({counts[level]})" for level in sorted(counts)[::-1])
