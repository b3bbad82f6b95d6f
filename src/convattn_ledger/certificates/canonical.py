"""How a certificate is written: canonical JSON, with the digests of what it holds."""

import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

from convattn.files import write_file

SCHEMA = "convattn-certificate/1"
CONVENTIONS = {
    "shift": "key - query",
    "tokens": "row-major",
    "patch": "row-major, channels last",
    "kernel": "HWIO",
}


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces: one text for one value.

    >>> canonical({"b": [1, "1/2"], "a": None})
    '{"a":null,"b":[1,"1/2"]}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def rational(number: Fraction | int) -> str:
    """A rational in lowest terms, "p" or "p/q".

    >>> rational(Fraction(2, 4)), rational(3)
    ('1/2', '3')
    """
    return str(Fraction(number))


def digest(value: Any) -> str:
    """SHA-256 of the canonical text."""
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()


def certificate(claim: str, kind: str, statement: str, body: dict[str, Any]) -> dict[str, Any]:
    """The whole certificate, with the digests of its specification and of its body.

    Args:
        As docs/certificates.md describes them.
    """
    specification = {
        "schema": SCHEMA,
        "claim": claim,
        "kind": kind,
        "statement": statement,
        "conventions": CONVENTIONS,
    }
    digests = {"specification": digest(specification), "body": digest(body)}
    return {**specification, "body": body, "digests": digests}


def write(value: dict[str, Any], path: Path) -> None:
    """Write a certificate beside its place, then move it there: never half a file."""
    write_file(path, (canonical(value) + "\n").encode("ascii"))
