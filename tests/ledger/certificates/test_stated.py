"""What a certificate may change and still be of the same statement: the fields below, no others."""

import hashlib
import json
from collections import defaultdict

import pytest

from convattn_check import check
from convattn_check.reading import canonical
from convattn_ledger.certificates.stated import committed, stated
from convattn_ledger.locations import certificates_directory

REFUSED = "the rest of the certificate leaves no other: the checker refuses"
MINOR = "any minor that is not 0 shows the rank; its size shows nothing more"
SOME_KERNEL = "the claim is of some kernel of these sizes"
SOME_LAYER = "the claim is of how many heads some layer has, and its error, not of its scores"
FREE: dict[str, dict[str, str]] = {
    "equality": {
        "attention.targets": "the order of the heads; each offset has one",
        "attention.forms": "the last column, a number for each query, is ignored by a softmax",
        "offsets": REFUSED,
        "pattern": REFUSED,
        "values.family": "one matrix, written in two ways",
        "values.entries": REFUSED,
        "values.master": REFUSED,
        "values.denominators": REFUSED,
    },
    "lower_bound": {
        "kernel": SOME_KERNEL,
        "rows": MINOR,
        "columns": MINOR,
        "determinant": REFUSED,
    },
    "head_dimension": {
        "kernel": SOME_KERNEL,
        "rows": MINOR,
        "columns": MINOR,
        "determinant": REFUSED,
    },
    "kernel_heads": {
        "attention": SOME_LAYER,
        "values.family": SOME_LAYER,
        "values.entries": SOME_LAYER,
        "rows": MINOR,
        "columns": MINOR,
        "determinant": REFUSED,
        "unread": "any shift that is not read shows the converse",
        "limit.combination": "any nonnegative vector of the row space; its size does not matter",
        "limit.positive": "any positive vector of the kernel's null space, likewise",
    },
    "approximation": {
        "attention": SOME_LAYER,
        "values.family": SOME_LAYER,
        "values.entries": SOME_LAYER,
        "thresholds": "they bound from below what is stated; the checker refuses loose ones",
    },
    "narrow_heads": {
        "heads.weights": SOME_LAYER,
        "heads.coordinates": "which channels a head has; how many at most is stated",
    },
    "two_layers": {
        "first.targets": "the order of the heads; how many is stated",
        "first.maps": "the scale of a block, which the second layer undoes",
        "second.targets": "the order of the heads; how many is stated",
        "second.maps": REFUSED,
    },
    "exponentials": {"places": "any token out of reach shows the same"},
    "total_variation": {
        "power": "an enclosure of the exponential; the checker refuses loose ones",
        "terms": "how long a series encloses the exponential",
        "squares": "how long a series encloses the bound, which is stated",
    },
    "saturation": {
        "e_lower": "an enclosure of e: the conclusion is stated with its exponent",
        "e_upper": "an enclosure of e: the conclusion is stated with its exponent",
    },
    "border": {
        "queries": "any two queries that differ refute",
        "sums": REFUSED,
    },
    "no_shared_map": {
        "inclusion": "any coefficients show the inclusion",
        "separator": "any vector that separates; its size does not matter",
        "tap": "any tap that no shared map reaches",
    },
    "rank": {
        "output": "the claim is of some matrices of these sizes",
        "value": "the claim is of some matrices of these sizes",
    },
}
CERTIFICATES = {
    name: json.loads((certificates_directory() / name).read_text()) for name in committed()
}


def paths(value, path=""):
    """The names of all fields, through dictionaries and lists of dictionaries."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from paths(part, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for part in value:
            yield from paths(part, path)
    else:
        yield path


def replaced(value, names, change):
    """The same with one field changed, in each entry of a list."""
    if isinstance(value, list) and names:
        return [replaced(part, names, change) if names[0] in part else part for part in value]
    if not names:
        return change(value)
    return {**value, names[0]: replaced(value[names[0]], names[1:], change)}


def other(value):
    """Another value, of as many entries; entries for none."""
    if isinstance(value, list) and value:
        return [other(part) for part in value]
    return f"{value} or other"


def scaled(factor):
    """All numbers of a field, times an integer."""

    def change(value):
        if isinstance(value, list):
            return [change(part) for part in value]
        if isinstance(value, str):
            above, *below = value.split("/")
            return "/".join([str(int(above) * factor), *below])
        return value * factor

    return change


def test_every_field_is_stated_or_free_for_a_reason():
    free = defaultdict(set)
    for certificate in CERTIFICATES.values():
        body, whole = certificate["body"], stated(certificate)
        for path in {*paths(body)}:
            if stated({**certificate, "body": replaced(body, path.split("."), other)}) == whole:
                free[certificate["kind"]].add(path)
    assert free == {kind: {*reasons} for kind, reasons in FREE.items()}


@pytest.mark.parametrize(
    ("kind", "path"),
    [(kind, path) for kind, table in FREE.items() for path in table if table[path] is REFUSED],
)
def test_the_checker_refuses_any_other(kind, path):
    """Times -1 or 10⁶, in the first certificate that has the field."""
    certificate = next(
        one for one in CERTIFICATES.values() if one["kind"] == kind and path in paths(one["body"])
    )
    for factor in (-1, 10**6):
        body = replaced(certificate["body"], path.split("."), scaled(factor))
        assert body != certificate["body"]
        digests = {
            **certificate["digests"],
            "body": hashlib.sha256(canonical(body).encode()).hexdigest(),
        }
        verdict = check(f"{canonical({**certificate, 'body': body, 'digests': digests})}\n")
        assert not verdict.accepted
        assert verdict.code not in ("digest", "canonical")
