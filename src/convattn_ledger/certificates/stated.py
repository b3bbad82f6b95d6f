"""What a certificate states, apart from what proves it, and the statements that are committed.

A sound certificate may state less than a claim: another kernel size, more heads, a limit in place
of finite scores. So a claim is certified by its committed statements, each of them whole: a
certificate with the right number in one place and the right sizes in another is none of them. The
statements stand in stated.json beside this file, which `make certificates` writes.
"""

import json
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from convattn_ledger.certificates.canonical import canonical, digest

TABLE = Path(__file__).with_name("stated.json")
# For each kind the fields that only prove it, also single ones of a part ("attention.targets"):
# another proof of the same statement does as well.
WITNESSES: dict[str, frozenset[str]] = {
    "equality": frozenset({"attention.targets", "attention.forms", "values", "pattern", "offsets"}),
    "lower_bound": frozenset({"rows", "columns", "determinant", "kernel"}),
    "head_dimension": frozenset({"rows", "columns", "determinant", "kernel"}),
    "kernel_heads": frozenset(
        {"attention", "values", "rows", "columns", "determinant", "unread", "limit"}
    ),
    "approximation": frozenset({"attention", "values", "thresholds"}),
    "narrow_heads": frozenset({"heads"}),
    "two_layers": frozenset({"first.targets", "first.maps", "second"}),
    "exponentials": frozenset({"places"}),
    "total_variation": frozenset({"power", "terms", "squares"}),
    "saturation": frozenset({"e_lower", "e_upper"}),
    "border": frozenset({"queries", "sums"}),
    "no_shared_map": frozenset({"inclusion", "separator", "tap"}),
    "rank": frozenset({"output", "value"}),
    "identity": frozenset({"definitions", "tensors", "differ", "equal"}),
}


def stated(certificate: Mapping[str, Any]) -> dict[str, Any]:
    """The kind, and the fields of the body that are the statement.

    Heads that only stand in a list are counted; whether a limit takes fewer is a word; an identity
    is named by the digest of its body, as its tensors and definitions are the statement. A ring is
    part of the statement: with a wider one the layer needs more zero tokens. So are the numbers
    that the scores rest on (leak, codes, corners, bases): a polygon of more corners than offsets is
    one-hot in the limit as well, and is ahead by less.

    >>> body = {"alpha": 46, "exponent": -149, "conclusion": "survives", "e_lower": "27/10"}
    >>> sorted(stated({"kind": "saturation", "body": body}))
    ['alpha', 'conclusion', 'exponent', 'kind']
    """
    kind, body = certificate["kind"], certificate["body"]
    witnesses = WITNESSES.get(kind, frozenset())
    result = {"kind": kind}
    for key, part in body.items():
        if key not in witnesses:
            items = part.items() if isinstance(part, dict) else ()
            numbers = {name: value for name, value in items if f"{key}.{name}" not in witnesses}
            result[key] = numbers if isinstance(part, dict) else part
    if kind == "two_layers":
        result["heads"] = [len(body[layer]["targets"]) for layer in ("first", "second")]
    if kind == "kernel_heads" and "limit" in body:
        result["limit"] = sorted(body["limit"])
    if kind == "identity":
        result["body"] = digest(body)
    return result


@cache
def committed() -> dict[str, dict[str, Any]]:
    """The statement of every committed certificate, by file name."""
    return json.loads(TABLE.read_text("utf-8"))


def committed_files(claim: str, pattern: str) -> dict[str, dict[str, Any]]:
    """The committed statements of a claim, by file name, of the files that match.

    >>> [statement["heads"] for statement in committed_files("S.sharpness", "*").values()]
    [2, 2]
    """
    name = f"{claim}-{pattern}.json"
    return {file: statement for file, statement in committed().items() if fnmatchcase(file, name)}


def table_text(certificates: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    """What stated.json holds: a line for each file.

    >>> print(table_text([("C20.x-1.json", {"kind": "none", "body": {"heads": 2}})]), end="")
    {
    "C20.x-1.json":{"heads":2,"kind":"none"}
    }
    """
    rows = sorted((name, stated(certificate)) for name, certificate in certificates)
    lines = (f"{canonical(name)}:{canonical(statement)}" for name, statement in rows)
    return "{\n" + ",\n".join(lines) + "\n}\n"
