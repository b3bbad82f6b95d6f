"""`pruning.json` of a run: from which run its parameters came, without which heads."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from convattn.lab.runs.directory import PRUNING, RunDirectory


@dataclass(frozen=True)
class Pruning:
    """What pruning a run did, or is about to do.

    Attributes:
        source: Of the run that was pruned, `config` and `result` as its folder holds them, and
            `images_sha256`, the digest of its images.
        thresholds: `largest` and `condition`, by which heads were degenerate.
        kept: For each layer the numbers of its heads, counted from 1 in the run that nothing had
            been pruned from.
        removed: How many heads went, for each layer.
        epochs_before: Epochs that the parameters had been trained for.
        before, pruned, after: Test accuracy of the run, of its parameters without the heads, and
            after training on; None where it has not been measured.
    """

    source: dict[str, Any]
    thresholds: dict[str, float]
    kept: list[list[int]]
    removed: list[int]
    epochs_before: int
    before: float | None
    pruned: float | None = None
    after: float | None = None

    def to_json(self) -> dict[str, Any]:
        """As `pruning.json` holds it."""
        return asdict(self)

    def other_parts(self, stored: "Pruning") -> list[str]:
        """The names of the fields that say what was pruned and differ in a stored one."""
        parts = ("thresholds", "kept", "removed", "epochs_before")
        found = [name for name in parts if getattr(self, name) != getattr(stored, name)]
        for name in ("config", "images_sha256"):
            if self.source[name] != stored.source[name]:
                found.append(f"source.{name}")
        return found


def read_pruning(folder: Path) -> Pruning | None:
    """What the folder of a run says of its pruning; None if it was not made by pruning.

    Raises:
        ValueError: For a file that is damaged.
    """
    stored = RunDirectory(folder).read_pruning()
    if stored is None:
        return None
    try:
        found = Pruning(**{name: stored[name] for name in Pruning.__dataclass_fields__})
        for name in ("config", "result", "images_sha256"):
            found.source[name]
    except (KeyError, TypeError) as problem:
        raise ValueError(
            f"{folder / PRUNING} does not say what was pruned ({problem!r}); it was damaged, "
            "or written by another version: prune again into a new folder"
        ) from problem
    return found


def epochs_before(path: Path) -> int:
    """How many epochs the run had been trained for before it was pruned; else 0."""
    stored = read_pruning(path)
    return 0 if stored is None else stored.epochs_before
