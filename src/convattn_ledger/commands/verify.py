"""``convattn verify``: run the evidence for the claims of the ledger."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import UseAppendAction, arg

from convattn.cli.output import console, require_folder, require_outputs, write_json
from convattn.cli.running import (
    FAILED,
    SUCCESS,
    Flag,
    Json,
    Proofs,
    UsageError,
    option,
    require_platform,
    require_seed,
    termination_raises,
)
from convattn.files import write_file
from convattn_ledger.claim import Level
from convattn_ledger.discovery import Proof, discover
from convattn_ledger.journal import Journal
from convattn_ledger.json_report import as_document
from convattn_ledger.locations import (
    certificates_directory,
    coq_directory,
    proofs_directory,
    prove_report,
)
from convattn_ledger.report import display, print_report
from convattn_ledger.runner import Options, run
from convattn_ledger.selection import NothingSelected, matching, select


@dataclass(frozen=True)
class Verify:
    """Run the evidence for the claims and print the ledger's state.

    Exits 0 if no selected evidence fails and each level that a claim must have was reached, as far
    as --quick and --level let it run; 1 if not, 2 on wrong use.

    Attributes:
        claim: Only this claim, or those matching a pattern such as 'C20.*'.
        level: Only evidence of this level: PROVED, CERTIFIED, ENCLOSED, BOUNDED, TESTED or
            MEASURED; claims without any are left out.
        quick: Only evidence that is marked quick.
        seed: The seed of all random numbers.
        jobs: Worker processes; default: one for each core. A TPU allows 1.
        timeout: Seconds allowed for each piece of evidence; default: an hour.
        restart: Begin again: without what a verification that was ended has passed, which is
            otherwise not run again if nothing has changed.
        certificates: Certificates; default: the committed ones.
        report: Write the report into this folder: index.html, which needs no network.
    """

    claim: Annotated[UseAppendAction[tuple[str, ...]], arg(metavar="ID")] = ()
    level: Annotated[UseAppendAction[tuple[str, ...]], arg(metavar="LEVEL")] = ()
    quick: Flag = False
    seed: int = 0
    jobs: Annotated[int | None, option("N")] = None
    timeout: Annotated[float | None, option("SECONDS")] = None
    restart: Flag = False
    json: Json = None
    proofs: Proofs = None
    certificates: Annotated[Path | None, option("DIR")] = None
    report: Annotated[Path | None, option("DIR")] = None

    def __call__(self) -> int:
        """Run the evidence, print the report and write it as JSON.

        Returns:
            0 or 1, as above; 128 and the signal's number if a signal ended it.
        """
        require_seed(self.seed)
        directory = self.certificates or certificates_directory()
        read = {
            "--proofs": (self.proofs or proofs_directory()).rglob("*"),
            "--certificates": directory.glob("*.json"),
            "the report of convattn prove": prove_report(),
        }
        page = self.report / "index.html" if self.report else None
        require_folder(self.report, "--report")
        require_outputs({"--json": self.json}, read)
        if self.jobs is not None and self.jobs < 1:
            raise UsageError(f"--jobs got {self.jobs}, but expected at least 1")
        if self.timeout is not None and not 0 < self.timeout < 1e9:
            raise UsageError(
                f"--timeout got {self.timeout}, but expected a positive number of seconds"
            )
        chosen = [_level(name) for name in self.level]
        if self.certificates is not None and not self.certificates.is_dir():
            raise UsageError(f"--certificates got {self.certificates}, which is not a directory")
        with termination_raises(), display(console(stderr=True)) as progress:
            proofs, report = (self.proofs or proofs_directory()).resolve(), prove_report()
            journal = Journal.of(  # before a proof is loaded
                (proofs, coq_directory(), directory.resolve(), *([report] if report else [])),
                (self.seed, self.quick, self.timeout),
            )
            discovered = find_proofs(self.proofs)
            try:
                matched = matching(discovered, self.claim)
                selected, left_out = select(matched, chosen, self.quick)
            except NothingSelected as error:
                raise UsageError(str(error)) from error
            require_platform()
            progress.progressed("starting", 0, sum(len(item.evidence) for item in selected))
            if self.restart:
                journal.remove()
            numbers = (self.seed, self.quick, self.jobs, self.timeout)
            options = Options(directory.resolve(), *numbers, journal=journal)
            outcome = run(selected, options, progress.finished, progress.progressed)
        print_report(console(), outcome, left_out)
        _warn_of_unloaded(discovered, matched)
        if journal.changed:
            print(
                f"convattn verify: {journal.changed} changed meanwhile: results may be of its "
                "state before or after, and are not kept to go on from; run it again",
                file=sys.stderr,
            )
        if outcome.interrupted:
            return outcome.interrupted
        selection = {
            "claims": list(self.claim),
            "levels": [level.name for level in chosen],
            "left_out": left_out,
        }
        document = as_document(outcome, options, selection)
        write_json(self.json, document)
        if page is not None:
            from convattn_ledger.page.build import TooLarge, report_page

            try:
                content = report_page(outcome, options, document["environment"])
            except TooLarge as error:
                raise UsageError(str(error)) from error
            page.parent.mkdir(parents=True, exist_ok=True)
            write_file(page, content)
            print(f"the report: {page}")
        return SUCCESS if outcome.passed else FAILED


def find_proofs(directory: Path | None) -> list[Proof]:
    """Discover the proofs in a directory, or in the checkout or installation."""
    place = directory or proofs_directory()
    option = "--proofs got" if directory else "the proofs are expected in"
    if not place.is_dir():
        raise UsageError(f"{option} {place}, which is not a directory")
    proofs = discover(place)
    if not proofs:
        raise UsageError(f"{option} {place}, but it has no proof files <paper>/<name>.py")
    return proofs


def _level(name: str) -> Level:
    try:
        return Level[name.upper()]
    except KeyError:
        names = ", ".join(level.name for level in sorted(Level, reverse=True))
        raise UsageError(f"--level got {name!r}, but expected one of {names}") from None


def _warn_of_unloaded(proofs: Sequence[Proof], matched: Sequence[Proof]) -> None:
    elsewhere = [proof.label for proof in proofs if proof.problem and proof not in matched]
    if elsewhere:
        print(
            f"convattn verify: not selected, but these files could not be loaded: "
            f"{', '.join(elsewhere)}",
            file=sys.stderr,
        )
