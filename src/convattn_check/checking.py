"""One certificate: read it, compare the digests, hand its body to the check for its kind."""

import hashlib
import time
from collections.abc import Callable

from convattn_check.approximation import check_approximation
from convattn_check.border import check_border
from convattn_check.claims import CLAIMS
from convattn_check.commutant import check_commutant
from convattn_check.equality import check_equality
from convattn_check.exponentials import check_exponentials
from convattn_check.head_dimension import check_head_dimension
from convattn_check.identity import check_identity
from convattn_check.kernel_heads import check_kernel_heads
from convattn_check.lower_bound import check_lower_bound
from convattn_check.narrow_heads import check_narrow_heads
from convattn_check.rank import check_rank
from convattn_check.reading import canonical, fields, parse, same, string
from convattn_check.reject import Reject, require, show
from convattn_check.saturation import check_saturation
from convattn_check.shared_map import check_no_shared_map
from convattn_check.total_variation import check_total_variation
from convattn_check.two_layers import check_two_layers
from convattn_check.verdict import Verdict

SCHEMA = "convattn-certificate/1"
CONVENTIONS = {
    "shift": "key - query",
    "tokens": "row-major",
    "patch": "row-major, channels last",
    "kernel": "HWIO",
}
SPECIFICATION = ("schema", "claim", "kind", "statement", "conventions")
CHECKS: dict[str, Callable[[str, object], str]] = {
    "equality": check_equality,
    "lower_bound": check_lower_bound,
    "no_shared_map": check_no_shared_map,
    "rank": check_rank,
    "saturation": check_saturation,
    "border": check_border,
    "total_variation": check_total_variation,
    "commutant": check_commutant,
    "identity": check_identity,
    "head_dimension": check_head_dimension,
    "kernel_heads": check_kernel_heads,
    "narrow_heads": check_narrow_heads,
    "approximation": check_approximation,
    "two_layers": check_two_layers,
    "exponentials": check_exponentials,
}


def check(text: str | bytes, *, ignore_digests: bool = False) -> Verdict:
    """Accept or reject one certificate; whatever goes wrong is a rejection.

    Args:
        text: The whole file.
        ignore_digests: Leave the digests alone; the mathematics decides by itself.

    Returns:
        The verdict. Nothing is raised (but `KeyboardInterrupt` and its like pass).

    >>> verdict = check("{}")
    >>> verdict.accepted, verdict.code
    (False, 'canonical')
    """
    started = time.perf_counter()
    claim = ""
    try:
        top = fields(parse(text), "the certificate", [*SPECIFICATION, "body", "digests"])
        claim = _read_specification(top)
        _check_digests(top, ignore_digests)
        reason = CHECKS[str(top["kind"])](claim, top["body"])
        accepted, code = True, ""
    except Reject as reject:
        accepted, code, reason = False, reject.code, reject.reason
    except Exception as error:
        accepted, code = False, "internal"
        reason = f"the check broke off with {type(error).__name__}: {show(str(error))}"
    return Verdict(accepted, claim, code, reason, time.perf_counter() - started)


def _read_specification(top: dict[str, object]) -> str:
    schema, conventions = top["schema"], top["conventions"]
    require(schema == SCHEMA, "schema", f"schema {show(schema)}, expected {SCHEMA!r}")
    require(
        same(conventions, CONVENTIONS),
        "schema",
        f"conventions {show(conventions)}, expected {CONVENTIONS}",
    )
    string(top["statement"], "statement")
    string(top["kind"], "kind", CHECKS)
    claim = string(top["claim"], "claim")
    require(claim in CLAIMS, "claim", f"claim {show(claim)}, expected one of {sorted(CLAIMS)}")
    return claim


def _check_digests(top: dict[str, object], ignored: bool) -> None:
    """The digests tie a body to what it was made for; they prove nothing, nor are they needed."""
    digests = fields(top["digests"], "digests", ["specification", "body"])
    contents = {
        "specification": ("stale", {name: top[name] for name in SPECIFICATION}),
        "body": ("digest", top["body"]),
    }
    for name, (code, content) in contents.items():
        digest = string(digests[name], f"digests.{name}")
        expected = hashlib.sha256(canonical(content).encode()).hexdigest()
        require(
            ignored or digest == expected,
            code,
            f"digests.{name} is {show(digest)}, expected {expected}: one was changed afterwards",
        )
