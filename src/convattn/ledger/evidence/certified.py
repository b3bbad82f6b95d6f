"""Evidence of level CERTIFIED: committed certificates, judged by the independent checker."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from convattn.files import read_file
from convattn.ledger.certificates.stated import committed_of, stated
from convattn.ledger.claim import Evidence, EvidenceFailed, Level, Run


def certified(
    claim: str,
    pattern: str = "*",
    *,
    cases: Sequence[Mapping[str, Any]] | None = None,
    name: str | None = None,
    kind: str = "equality",
) -> Evidence:
    """The certificates of a claim whose file names match, each accepted by `convattn_check`.

    A sound certificate may be of a trivial case, such as K = 1, or state a smaller number. So the
    claim needs each of its committed statements, whole (`convattn.ledger.certificates.stated`).

    Args:
        claim: The id; the files are `CLAIM-PATTERN.json` and must name this claim inside.
        pattern: A glob for the rest of the file name.
        cases: For a claim without committed certificates: for each case, some certificate must have
            these entries in its body, and stride and dilation 1 where the case names no other. By
            default the committed statements of the claim's files that match. File names prove
            nothing; the bodies are what the checker accepted.
        name: The name of the evidence.
        kind: What each certificate must be a certificate of.

    The check fails if no certificate matches, or one is rejected, belongs to another claim or is of
    another kind, or a case is missing.

    Raises:
        ValueError: If there are no cases.
    """
    whole = cases is None
    needed = committed_of(claim, pattern) if cases is None else list(cases)
    if not needed:
        raise ValueError(
            f"cases={cases!r} of {claim}-{pattern}, but expected at least one; name a non-trivial "
            "size, or commit a certificate (make certificates)"
        )

    def check(run: Run) -> str:
        paths = sorted(Path(run.certificates).glob(f"{claim}-{pattern}.json"))
        if not paths:
            raise EvidenceFailed(
                f"no certificate matches {claim}-{pattern}.json in {run.certificates}; write them "
                "with python -m convattn.ledger.certificates"
            )
        bodies: list[Mapping[str, Any]] = []
        for path in paths:
            certificate, _ = _accepted(path)
            if certificate["claim"] != claim:
                raise EvidenceFailed(f"{path.name} is a certificate of {certificate['claim']}")
            if certificate["kind"] != kind:
                raise EvidenceFailed(
                    f"{path.name} is a certificate of the kind {certificate['kind']!r}, but should "
                    f"be of {kind!r}"
                )
            bodies.append(stated(certificate) if whole else certificate["body"])
        for case in needed:
            if not any(body == case if whole else _has(body, case) for body in bodies):
                raise EvidenceFailed(
                    f"none of the {len(paths)} certificates has {dict(case)}; write them anew with "
                    "python -m convattn.ledger.certificates"
                )
        return f"{len(paths)} accepted: {', '.join(path.stem for path in paths)}"

    return Evidence(
        name or ("certificates" if pattern == "*" else f"certificates {pattern}"),
        Level.CERTIFIED,
        check,
        assumes="Python's integers and fractions",
    )


def _accepted(path: Path) -> tuple[dict[str, Any], str]:
    """A certificate, and what the checker concludes from it.

    Raises:
        EvidenceFailed: Where the checker rejects it.
    """
    from convattn_check import check as judge
    from convattn_check.reading import LARGEST_FILE

    text = read_file(path, LARGEST_FILE + 1)
    verdict = judge(text)
    if not verdict.accepted:
        raise EvidenceFailed(f"{path.name} rejected ({verdict.code}): {verdict.reason}")
    return json.loads(text), verdict.reason


def _has(body: Mapping[str, Any], case: Mapping[str, Any]) -> bool:
    """Whether a body is of a case; one of another stride says less of its size."""
    plain = {key: [1] * len(body[key]) for key in ("stride", "dilation") if key in body}
    return all(body.get(key) == value for key, value in {**plain, **case}.items())


def certified_identities(claim: str, name: str, *identities: str, pattern: str = "*") -> Evidence:
    """The certificates of polynomial identities, which are these.

    Raises:
        ValueError: If the committed ones are others.
    """
    names = {statement["identity"] for statement in committed_of(claim, pattern)}
    if names != {*identities}:
        raise ValueError(
            f"identities={identities} of {claim}-{pattern}, but the committed certificates are of "
            f"{sorted(names)}"
        )
    return certified(claim, pattern, name=name, kind="identity")


def print_counterexample(run: Run, file_name: str) -> str:
    """What the checker concludes from one certificate, and its numbers, for a reader.

    Raises:
        EvidenceFailed: Where the checker rejects it.
    """
    certificate, reason = _accepted(Path(run.certificates) / file_name)
    body = certificate["body"]
    return "\n".join([reason, *(f"  {name}: {body[name]}" for name in sorted(body))])
