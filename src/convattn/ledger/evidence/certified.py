"""Evidence of level CERTIFIED: committed certificates, judged by the independent checker."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from convattn.ledger.certificates.catalogue import SIZES
from convattn.ledger.claim import Evidence, EvidenceFailed, Level, Run

SEVEN_SIZES = tuple({"kernel_size": [k, k], "patch_size": [p, p]} for k, p in SIZES)


def certified(
    claim: str,
    pattern: str = "*",
    *,
    name: str | None = None,
    kind: str = "equality",
    cases: Sequence[Mapping[str, Any]] = (),
) -> Evidence:
    """The certificates of a claim whose file names match, each accepted by `convattn_check`.

    Args:
        claim: The id; the files are `CLAIM-PATTERN.json` and must name this claim inside.
        pattern: A glob for the rest of the file name.
        kind: What each certificate must be a certificate of.
        cases: For each case, some certificate must have these entries in its body. File names prove
            nothing; the bodies are what the checker accepted.

    The check fails if no certificate matches, or one is rejected, belongs to another claim or is of
    another kind, or a case is missing.
    """

    def check(run: Run) -> str:
        from convattn_check import check as judge

        paths = sorted(Path(run.certificates).glob(f"{claim}-{pattern}.json"))
        if not paths:
            raise EvidenceFailed(
                f"no certificate matches {claim}-{pattern}.json in {run.certificates}; write them "
                "with python -m convattn.ledger.certificates"
            )
        bodies = []
        for path in paths:
            text = path.read_bytes()
            verdict = judge(text)
            if not verdict.accepted:
                raise EvidenceFailed(f"{path.name} rejected ({verdict.code}): {verdict.reason}")
            if verdict.claim != claim:
                raise EvidenceFailed(f"{path.name} is a certificate of {verdict.claim}")
            certificate = json.loads(text)
            if certificate["kind"] != kind:
                raise EvidenceFailed(
                    f"{path.name} is a certificate of the kind {certificate['kind']!r}, but should "
                    f"be of {kind!r}"
                )
            bodies.append(certificate["body"])
        for case in cases:
            if not any(all(body.get(key) == case[key] for key in case) for body in bodies):
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


def print_counterexample(run: Run, file_name: str) -> str:
    """What the checker concludes from one certificate, and its numbers, for a reader.

    Raises:
        EvidenceFailed: Where the checker rejects it.
    """
    from convattn_check import check as judge

    text = (Path(run.certificates) / file_name).read_bytes()
    verdict = judge(text)
    if not verdict.accepted:
        raise EvidenceFailed(f"{file_name} rejected ({verdict.code}): {verdict.reason}")
    body = json.loads(text)["body"]
    return "\n".join([verdict.reason, *(f"  {name}: {body[name]}" for name in sorted(body))])
