"""``convattn verify``: run the evidence for the claims of the ledger."""

import sys
from collections.abc import Sequence
from pathlib import Path

from convattn.cli.consoles import console
from convattn.cli.output_file import require_writable, write_json
from convattn.cli.termination import termination_raises
from convattn.cli.usage import UsageError
from convattn.ledger.claim import Level
from convattn.ledger.discovery import Proof, discover
from convattn.ledger.json_report import as_document
from convattn.ledger.locations import certificates_directory, proofs_directory
from convattn.ledger.report import display, print_report
from convattn.ledger.runner import Options, run
from convattn.ledger.selection import NothingSelected, matching, select


def verify(
    claims: Sequence[str] = (),
    levels: Sequence[str] = (),
    quick: bool = False,
    seed: int = 0,
    jobs: int | None = None,
    timeout: float | None = None,
    proofs: Path | None = None,
    certificates: Path | None = None,
    json: Path | None = None,
) -> int:
    """Run the evidence, print the report and write it as JSON.

    Args:
        claims: Ids or shell patterns; all claims if empty.
        levels: Names of levels; all levels if empty.
        quick: Whether to run only evidence that is marked quick.
        seed: The seed of everything that is drawn.
        jobs: The number of worker processes; as many as cores if ``None``.
        timeout: Seconds allowed for each piece of evidence.
        proofs: The directory of proofs.
        certificates: The directory of certificates.
        json: Where to write the results.

    Returns:
        0 if the evidence for every selected claim passes, 1 if not, 128 and the signal's number if
        a signal ended it.

    Raises:
        UsageError: On wrong use.
    """
    if json is not None:
        require_writable(json, "--json")
    if jobs is not None and jobs < 1:
        raise UsageError(f"--jobs got {jobs}, but expected at least 1")
    if timeout is not None and not 0 < timeout < 1e9:
        raise UsageError(f"--timeout got {timeout}, but expected a positive number of seconds")
    chosen = [_level(name) for name in levels]
    found = find_proofs(proofs)
    directory = certificates or certificates_directory()
    if certificates is not None and not certificates.is_dir():
        raise UsageError(f"--certificates got {certificates}, which is not a directory")
    try:
        matched = matching(found, claims)
        selected, left_out = select(matched, chosen, quick)
    except NothingSelected as error:
        raise UsageError(str(error)) from error
    options = Options(directory.resolve(), seed, quick, jobs, timeout)
    with termination_raises(), display(console(stderr=True)) as shown:
        outcome = run(selected, options, shown.finished, shown.progressed)
    print_report(console(), outcome, left_out)
    _warn_of_unloaded(found, matched)
    if outcome.interrupted:
        return outcome.interrupted
    if json is not None:
        selection = {
            "claims": list(claims),
            "levels": [level.name for level in chosen],
            "left_out": left_out,
        }
        write_json(json, as_document(outcome, options, selection))
    return 0 if outcome.passed else 1


def find_proofs(directory: Path | None) -> list[Proof]:
    """Discover the proofs in a directory, or in the checkout or installation.

    Args:
        directory: What ``--proofs`` says.

    Raises:
        UsageError: If there is no such directory or there are no proofs in it.
    """
    place = directory or proofs_directory()
    option = "--proofs got" if directory else "the proofs are expected in"
    if not place.is_dir():
        raise UsageError(f"{option} {place}, which is not a directory")
    found = discover(place)
    if not found:
        raise UsageError(f"{option} {place}, but it has no proof files <paper>/<name>.py")
    return found


def _level(name: str) -> Level:
    try:
        return Level[name.upper()]
    except KeyError:
        names = ", ".join(level.name for level in sorted(Level, reverse=True))
        raise UsageError(f"--level got {name!r}, but expected one of {names}") from None


def _warn_of_unloaded(found: Sequence[Proof], matched: Sequence[Proof]) -> None:
    elsewhere = [proof.label for proof in found if proof.problem and proof not in matched]
    if elsewhere:
        print(
            f"convattn verify: not selected, but these files could not be loaded: "
            f"{', '.join(elsewhere)}",
            file=sys.stderr,
        )
