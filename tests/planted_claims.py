"""Loading claims from their proof files, and planting an error that a check of theirs must see."""

import pkgutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from convattn.ledger import Claim, Evidence, EvidenceFailed, Level, Run, evidence
from convattn.ledger.discovery import load_claim
from convattn.ledger.evidence import head_floor, layer_runs
from convattn.ledger.locations import certificates_directory, proofs_directory

Change = Callable[[Any], Any]

# Certificates are altered in tests/convattn_check/ and tests/mutants/, theorems in tests/proving/.
PLANTED_ELSEWHERE = (Level.CERTIFIED, Level.PROVED)


def load(folder: str, name: str) -> Claim:
    """The claim of one proof file."""
    return load_claim(proofs_directory() / folder / f"{name}.py")[0]


def piece_of(folder: str, name: str, title: str) -> tuple[Evidence, Run]:
    """One piece of evidence, and a quick run for it."""
    claim = load(folder, name)
    (piece,) = (piece for piece in claim.evidence if piece.name == title)
    return piece, Run(0, True, certificates_directory(), claim.id, title)


def require_failure(
    monkeypatch: pytest.MonkeyPatch, piece: Evidence, run: Run, where: str, change: Change
) -> None:
    """Run a check on two images with a change planted; it must speak against the claim.

    `where` is a dotted name, or the name of something in the proof file itself. `change` takes what
    stands there and returns what is to stand there instead.
    """
    all_images = evidence.whole_images
    for module in (evidence, layer_runs, head_floor):
        monkeypatch.setattr(module, "whole_images", lambda run: all_images(run, 2))
    if "." in where:
        path, _, attribute = where.rpartition(".")
        owner = pkgutil.resolve_name(path)
        monkeypatch.setattr(owner, attribute, change(getattr(owner, attribute)))
    else:
        names = piece.check.__globals__
        monkeypatch.setitem(names, where, change(names[where]))
    with pytest.raises(EvidenceFailed):
        piece.check(run)


def require_certificates(piece: Evidence, run: Run) -> None:
    """Without certificates, nothing is certified."""
    assert piece.level is Level.CERTIFIED
    with pytest.raises(EvidenceFailed, match="no certificate matches"):
        piece.check(run)


# Changes.


def always(value: Any) -> Change:
    return lambda original: lambda *given, **named: value


def replaced_by(value: Any) -> Change:
    return lambda original: value


def scaled(factor: Any) -> Change:
    return lambda original: lambda *given, **named: factor * original(*given, **named)


def one_more(original: Any) -> Any:
    return lambda *given, **named: original(*given, **named) + 1


def turned_around(original: Any) -> Any:
    return lambda *given, **named: original(*given, **named)[::-1]


def turned_kernel(original: Any) -> Any:
    def changed(kernel: Any, *given: Any, **named: Any) -> Any:
        axes = tuple(range(kernel.ndim - 2))
        return original(np.flip(np.asarray(kernel), axes), *given, **named)

    return changed


def doubled_kernel(original: Any) -> Any:
    return lambda kernel, *given, **named: original(2 * kernel, *given, **named)


def without(option: str) -> Change:
    def change(original: Any) -> Any:
        return lambda *given, **named: original(*given, **{**named, option: 1})

    return change
