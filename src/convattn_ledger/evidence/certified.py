"""Evidence of level CERTIFIED: committed certificates, judged by the independent checker."""

import json
from pathlib import Path
from typing import Any

from convattn.files import read_file
from convattn_ledger.certificates.stated import committed_files, stated
from convattn_ledger.claim import Evidence, EvidenceFailed, Level, Run


def certified(
    claim: str,
    pattern: str = "*",
    *,
    name: str | None = None,
    covers: str = "",
) -> Evidence:
    """The certificates of a claim whose file names match, each accepted by `convattn_check`.

    A sound certificate may be of a trivial case, such as K = 1, or state a smaller number. So the
    claim needs each of its committed statements, whole (`convattn_ledger.certificates.stated`).

    Args:
        claim: The id; the files are `CLAIM-PATTERN.json` and must name this claim inside.
        pattern: A glob for the rest of the file name.
        name: The name of the evidence.
        covers: The values at which certificates have what the claim leaves open, such as a leak.

    The check fails if no certificate matches, or one is rejected, belongs to another claim or is of
    another kind, or a statement is missing.

    Raises:
        ValueError: If no certificate of that name is committed.
    """
    files = committed_files(claim, pattern)
    needed = list(files.values())
    if not needed:
        raise ValueError(
            f"no certificate {claim}-{pattern}.json is committed; add it to the catalogue, and run "
            "make certificates"
        )

    kinds = sorted({statement["kind"] for statement in needed})

    def check(run: Run) -> str:
        paths = sorted(Path(run.certificates).glob(f"{claim}-{pattern}.json"))
        if not paths:
            raise EvidenceFailed(
                f"no certificate matches {claim}-{pattern}.json in {run.certificates}; write them "
                "with python -m convattn_ledger.certificates"
            )
        statements: list[dict[str, Any]] = []
        for path in paths:
            certificate, _ = _accepted(path)
            if certificate["claim"] != claim:
                raise EvidenceFailed(f"{path.name} is a certificate of {certificate['claim']}")
            if certificate["kind"] not in kinds:
                raise EvidenceFailed(
                    f"{path.name} is a certificate of the kind {certificate['kind']!r}, but should "
                    f"be of {' or '.join(kinds)}"
                )
            statements.append(stated(certificate))
        for statement in needed:
            if statement not in statements:
                raise EvidenceFailed(
                    f"none of the {len(paths)} certificates has {statement}; write them anew with "
                    "python -m convattn_ledger.certificates"
                )
        return f"{len(paths)} accepted: {', '.join(path.stem for path in paths)}"

    return Evidence(
        name or ("certificates" if pattern == "*" else f"certificates {pattern}"),
        Level.CERTIFIED,
        check,
        assumes="Python's integers and fractions",
        covers=covers,
        files=tuple(f"certificates/{file}" for file in files),
    )


def _accepted(path: Path) -> tuple[dict[str, Any], str]:
    """A certificate, and what the checker concludes from it."""
    from convattn_check import check as judge
    from convattn_check.reading import LARGEST_FILE

    text = read_file(path, LARGEST_FILE + 1)
    verdict = judge(text)
    if not verdict.accepted:
        raise EvidenceFailed(f"{path.name} rejected ({verdict.code}): {verdict.reason}")
    return json.loads(text), verdict.reason


def certified_identities(
    claim: str, name: str, *identities: str, pattern: str = "*", covers: str = ""
) -> Evidence:
    """The certificates of polynomial identities, which are these.

    Raises:
        ValueError: If the committed ones are others.
    """
    names = {statement["identity"] for statement in committed_files(claim, pattern).values()}
    if names != {*identities}:
        raise ValueError(
            f"identities={identities} of {claim}-{pattern}, but the committed certificates are of "
            f"{sorted(names)}"
        )
    return certified(claim, pattern, name=name, covers=covers)


def print_counterexample(run: Run, file_name: str) -> str:
    """What the checker concludes from one certificate, and its numbers, for a reader."""
    certificate, reason = _accepted(Path(run.certificates) / file_name)
    body = certificate["body"]
    return "\n".join([reason, *(f"  {name}: {body[name]}" for name in sorted(body))])
