"""Claims from their proof files, and an error planted for one piece of their evidence."""

import pkgutil
from collections.abc import Callable
from typing import Any

import jax
import pytest

from convattn_ledger import Claim, Evidence, EvidenceFailed, Run
from convattn_ledger.discovery import load_claim
from convattn_ledger.evidence import real_images
from convattn_ledger.locations import certificates_directory, proofs_directory


def load(folder: str, name: str) -> Claim:
    """The claim of one proof file."""
    return load_claim(proofs_directory() / folder / f"{name}.py")[0]


def piece_of(folder: str, name: str, title: str) -> tuple[Evidence, Run]:
    """One piece of evidence, and a quick run for it."""
    claim = load(folder, name)
    (piece,) = (piece for piece in claim.evidence if piece.name == title)
    return piece, Run(0, True, certificates_directory(), claim.id, title)


def require_failure(
    monkeypatch: pytest.MonkeyPatch,
    folder: str,
    name: str,
    title: str,
    where: str,
    change: Callable[[Any], Any],
) -> None:
    """Run a check on two images with a change planted; it must speak against the claim.

    What a library defines is changed before the proof file is loaded, which then imports it.
    """
    monkeypatch.setattr(real_images, "COUNT", 2)
    if "." in where:
        path, _, attribute = where.rpartition(".")
        whole = path.startswith(("flint", "jax"))
        package = (
            "" if whole else "convattn_" if path.startswith(("ledger", "lab")) else "convattn."
        )
        owner = pkgutil.resolve_name(package + path)
        monkeypatch.setattr(owner, attribute, change(getattr(owner, attribute)))
        jax.clear_caches()  # programs that other tests compiled hold what was there before
    piece, run = piece_of(folder, name, title)
    if "." not in where:
        names = piece.check.__globals__
        monkeypatch.setitem(names, where, change(names[where]))
    with pytest.raises(EvidenceFailed):
        piece.check(run)
