"""What a corpus consists of: the text of each certificate, and what its manifest says about it."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import certificate_builder as build
from certificate_cases import CASES, changed

from convattn_check.checking import check
from convattn_check.cost import Work
from convattn_check.formula import Evaluation

SCHEMA = "convattn-certificate/1"
ROOT = Path(__file__).parents[2]
FAULTS = {
    "false": "what it states is false, or one of its numbers is not what it is said to be",
    "label": "what it shows is true, and less than the claim on its label says",
    "vacuous": "nothing follows from it",
    "form": "it is not written as the format demands; what it means may be true",
    "cost": "it may be true, and takes numbers that are longer than a checker has to compute",
    "digest": "it is not what was sealed",
}
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Entry:
    """One file of a corpus; `content` is None for a file that is not there."""

    name: str
    content: bytes | None
    kind: str
    claim: str
    why: str
    reason: str
    code: str = ""
    fault: str = ""

    @property
    def file(self) -> str:
        return f"{self.name}.json"

    def described(self) -> dict[str, Any]:
        names = ("fault", "code") if self.fault else ()
        fields = ("file", "kind", "claim", *names, "reason", "why")
        found = {name: getattr(self, name) for name in fields}
        if not self.fault and self.content is not None:
            found["steps"] = steps_of(self.content)
        return found


def entry(slug: str, certificate: dict[str, Any], why: str, reason: str, **more: str) -> Entry:
    """A certificate as it is, named after its kind."""
    kind, claim = certificate["kind"], certificate["claim"]
    content = build.written(certificate).encode()
    return Entry(f"{kind}-{slug}", content, kind, claim, why, reason, **more)


def falsehoods(rows: Iterable[Row], fault: str = "false") -> list[Entry]:
    """From (slug, certificate or the name of a case, change of its body, code, reason, why).

    Digests are made anew after the change, so that the mathematics decides.
    """
    found = []
    for slug, case, change, code, reason, why in rows:
        start = CASES[case] if isinstance(case, str) else case
        certificate = changed(start, change) if change else start
        found.append(entry(slug, certificate, why, reason, code=code, fault=fault))
    return found


def truths(rows: Iterable[Row]) -> list[Entry]:
    """From (slug, certificate, part of the sentence that follows, why it is at an edge)."""
    return [entry(slug, certificate, why, reason) for slug, certificate, reason, why in rows]


def steps_of(content: bytes) -> int:
    """What the checker counts while it decides: the same on every machine."""
    before = [(Work, "add", Work.add), (Evaluation, "_count", Evaluation._count)]
    steps = 0

    def counting(method: Any) -> Any:
        def count(self: Any, *given: int) -> None:
            nonlocal steps
            steps -= self.steps
            method(self, *given)
            steps += self.steps

        return count

    for cls, name, method in before:
        setattr(cls, name, counting(method))
    try:
        assert check(content).accepted
    finally:
        for cls, name, method in before:
            setattr(cls, name, method)
    return steps


def manifest(entries: Sequence[Entry], about: str) -> str:
    """What a manifest says, an entry a line."""
    head: dict[str, Any] = {"about": about, "schema": SCHEMA}
    if any(each.fault for each in entries):
        head["faults"] = FAULTS
    opening = json.dumps(head, indent=1)[:-2]
    lines = ",\n  ".join(json.dumps(each.described()) for each in entries)
    return f'{opening},\n "certificates": [\n  {lines}\n ]\n}}\n'


def all_at_once(*changes: Any) -> Any:
    """A change that makes several."""

    def change(body: dict[str, Any]) -> None:
        for each in changes:
            each(body)

    return change


def update(**fields: Any) -> Any:
    """A change: body |= fields."""
    return lambda body: body.update(fields)


def swap(path: Sequence[Any], one: Any, two: Any) -> Any:
    """A change: two items below a path change places."""

    def change(body: Any) -> None:
        for step in path:
            body = body[step]
        body[one], body[two] = body[two], body[one]

    return change
