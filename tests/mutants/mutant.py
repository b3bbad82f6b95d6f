"""A planted slip, who must notice it and why, and the two judges."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest

from convattn.ledger.certificates.canonical import canonical
from convattn.ledger.claim import Evidence, EvidenceFailed, Run
from convattn_check import check

Subject = str | Evidence  # the text of a certificate, or evidence that is about to be checked
Plant = Callable[[pytest.MonkeyPatch], None]

ROOT = Path(__file__).parents[2]
BORDER_SHARE = 0.15  # one pixel around 32 × 32 is 12.1 % of the image
COUNT = re.compile(r"(\d+) of (\d+) entries")


@dataclass(frozen=True)
class Mutant:
    """A wrong construction.

    Attributes:
        name: Unique in the catalogue.
        slip: What a person got wrong, in one sentence.
        original: Makes the subject without the slip, which must be accepted.
        make: Makes the subject with the slip. What it plants in the library stays planted until
            the subject has been judged.
        rejected_by: "checker" (the subject is a certificate) or "ledger" (it is evidence).
        reason: A pattern that must match from the start of "code: reason" or of the message.
        border: Whether the slip may show in the outermost pixels only.
    """

    name: str
    slip: str
    original: Callable[[], Subject]
    make: Callable[[pytest.MonkeyPatch], Subject]
    rejected_by: Literal["checker", "ledger"]
    reason: str
    border: bool = False


def text_of(certificate: dict[str, Any]) -> str:
    """The file that holds a certificate."""
    return canonical(certificate) + "\n"


@cache
def text(make: Callable[[], dict[str, Any]]) -> Callable[[], str]:
    """Makes the file of the certificate that `make` makes; one function for each `make`."""
    return lambda: text_of(make())


def planted(original: Callable[[], Subject], plant: Plant) -> Callable[..., Subject]:
    """Make the subject by the original's own code, after the library has been changed."""

    def make(monkeypatch: pytest.MonkeyPatch) -> Subject:
        plant(monkeypatch)
        return original()

    return make


def wrong_layer(
    name: str,
    slip: str,
    original: Callable[[], Evidence],
    plant: Plant,
    reason: str,
    *,
    border: bool = False,
) -> Mutant:
    """A slip planted in the library, which the ledger's evidence must notice."""
    return Mutant(name, slip, original, planted(original, plant), "ledger", reason, border)


def wrong_certificate(
    name: str,
    slip: str,
    original: Callable[[], dict[str, Any]],
    make: Callable[[pytest.MonkeyPatch], Subject],
    reason: str,
) -> Mutant:
    """A certificate that the checker must reject."""
    return Mutant(name, slip, text(original), make, "checker", reason)


def rejection(subject: Subject) -> str | None:
    """Why the subject is rejected; None if it is accepted.

    Evidence that breaks off with anything but `EvidenceFailed` has judged nothing: that passes on.
    """
    if isinstance(subject, str):
        verdict = check(subject)
        return None if verdict.accepted else f"{verdict.code}: {verdict.reason}"
    run = Run(0, False, ROOT / "certificates", "S.mutants", subject.name)
    try:
        subject.check(run)
    except EvidenceFailed as failure:
        return str(failure)
    return None


def require_accepted(mutant: Mutant) -> None:
    """Raise `AssertionError` if the original is rejected: then the slip would prove nothing."""
    found = rejection(mutant.original())
    if found is not None:
        raise AssertionError(f"the original of {mutant.name} is rejected: {found}")


def require_rejected(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise `AssertionError` if the mutant survives, or falls for another reason than its slip."""
    subject = mutant.make(monkeypatch)
    judge = "checker" if isinstance(subject, str) else "ledger"
    if judge != mutant.rejected_by:
        raise AssertionError(f"{mutant.name} came before the {judge}, not the {mutant.rejected_by}")
    found = rejection(subject)
    if found is None:
        raise AssertionError(f"{mutant.name} survived the {judge}: {mutant.slip}")
    if not re.match(mutant.reason, found):
        raise AssertionError(f"{mutant.name} fell for another reason: {found}")
    if mutant.border:
        count = COUNT.search(found)
        if count is None or int(count[1]) > BORDER_SHARE * int(count[2]):
            raise AssertionError(f"{mutant.name} shows beyond the border: {found}")
