"""Evidence of level CERTIFIED: committed certificates, judged by the independent checker."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from convattn.files import read_file
from convattn.ledger.certificates.catalogue import SIZES
from convattn.ledger.claim import Evidence, EvidenceFailed, Level, Run


def sizes(*pairs: tuple[int, int]) -> tuple[dict[str, Any], ...]:
    """The cases K × K with P × P patches, for pairs (K, P).

    >>> sizes((5, 4))
    ({'kernel_size': [5, 5], 'patch_size': [4, 4]},)
    """
    return tuple({"kernel_size": [k, k], "patch_size": [p, p]} for k, p in pairs)


SEVEN_SIZES = sizes(*SIZES)


def certified(
    claim: str,
    pattern: str = "*",
    *,
    cases: Sequence[Mapping[str, Any]],
    name: str | None = None,
    kind: str = "equality",
) -> Evidence:
    """The certificates of a claim whose file names match, each accepted by `convattn_check`.

    A sound certificate may be of a trivial case, such as K = 1. So a claim names the cases that it
    needs; it cannot be certified without any.

    Args:
        claim: The id; the files are `CLAIM-PATTERN.json` and must name this claim inside.
        pattern: A glob for the rest of the file name.
        cases: For each case, some certificate must have these entries in its body, and stride and
            dilation 1 where the case names no other. File names prove nothing; the bodies are what
            the checker accepted.
        name: The name of the evidence.
        kind: What each certificate must be a certificate of.

    The check fails if no certificate matches, or one is rejected, belongs to another claim or is of
    another kind, or a case is missing.

    Raises:
        ValueError: If `cases` is empty.
    """
    if not cases:
        raise ValueError(f"cases={cases!r}, but expected at least one; name a non-trivial size")

    def check(run: Run) -> str:
        paths = sorted(Path(run.certificates).glob(f"{claim}-{pattern}.json"))
        if not paths:
            raise EvidenceFailed(
                f"no certificate matches {claim}-{pattern}.json in {run.certificates}; write them "
                "with python -m convattn.ledger.certificates"
            )
        bodies = []
        for path in paths:
            certificate, _ = _accepted(path)
            if certificate["claim"] != claim:
                raise EvidenceFailed(f"{path.name} is a certificate of {certificate['claim']}")
            if certificate["kind"] != kind:
                raise EvidenceFailed(
                    f"{path.name} is a certificate of the kind {certificate['kind']!r}, but should "
                    f"be of {kind!r}"
                )
            bodies.append(certificate["body"])
        for case in cases:
            if not any(_has(body, case) for body in bodies):
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
    """The certificates of polynomial identities; each identity that is named must occur."""
    cases = [{"identity": identity} for identity in identities]
    return certified(claim, pattern, cases=cases, name=name, kind="identity")


def print_counterexample(run: Run, file_name: str) -> str:
    """What the checker concludes from one certificate, and its numbers, for a reader.

    Raises:
        EvidenceFailed: Where the checker rejects it.
    """
    certificate, reason = _accepted(Path(run.certificates) / file_name)
    body = certificate["body"]
    return "\n".join([reason, *(f"  {name}: {body[name]}" for name in sorted(body))])
