"""A verification as JSON, for other programs."""

from typing import Any

from convattn_ledger.environment import host_environment
from convattn_ledger.runner import ClaimOutcome, Options, Outcome

SCHEMA = 1


def as_document(outcome: Outcome, options: Options, selection: dict[str, Any]) -> dict[str, Any]:
    """The results of a verification, as what `json.dumps` takes.

    The ``result`` of a claim is "passes", "fails" or "is incomplete", as in the tables; the exit
    status is 0 if the ``problems`` of every claim are empty. A file that could not be loaded
    is a claim whose id is its path; without a claim in it, its verdict is ``null``.

    Args:
        outcome: The results.
        options: How it was run.
        selection: What else was asked for, such as the levels.

    Returns:
        ``{"schema": 1, "environment": {...}, "claims": [...]}``.
    """
    return {
        "schema": SCHEMA,
        "environment": {
            **host_environment(),
            **outcome.environment,
            "seed": options.seed,
            "quick": options.quick,
            "options": {
                **selection,
                "certificates": str(options.certificates),
                "jobs": options.jobs,
                "timeout": options.timeout,
            },
            "seconds": outcome.seconds,
        },
        "claims": [_claim(claim) for claim in outcome.claims],
    }


def _claim(outcome: ClaimOutcome) -> dict[str, Any]:
    claim = outcome.selected.proof.claim
    return {
        "id": outcome.id,
        "source": claim.source if claim else str(outcome.selected.proof.path),
        "verdict": str(claim.verdict) if claim else None,
        "kinds": [str(kind) for kind in claim.kinds] if claim else [],
        "evidence": [
            {
                "name": item.evidence.name,
                "level": item.evidence.level.name,
                "passed": item.passed,
                "detail": item.detail,
                "seconds": item.seconds,
                "assumes": item.evidence.assumes,
                "covers": item.evidence.covers,
            }
            for item in outcome.evidence
        ],
        "result": outcome.result,
        "problems": list(outcome.problems),
        "seconds": outcome.seconds,
    }
