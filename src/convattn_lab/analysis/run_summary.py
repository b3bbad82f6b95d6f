"""What the folder of a run says of it: its name, images and accuracy, its heads and its pruning."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from convattn.files import brief
from convattn_lab.models.settings import EncoderSettings
from convattn_lab.runs.directory import ENDED, PRUNING, RESULT, RunDirectory
from convattn_lab.runs.settings import RunSettings
from convattn_lab.training.metrics import Kinds, read_metrics, require_kinds

Numbers = tuple[int, ...]
PRUNED: Kinds = {  # the fields of `Pruning`
    **{"source": dict, "thresholds": dict, "kept": list, "removed": list, "epochs_before": int},
    **dict.fromkeys(("before", "pruned", "after"), float | None),
}
PRUNED_RUN: Kinds = {"config": dict, "result": dict | None, "images_sha256": str}


@dataclass(frozen=True)
class RunSummary:
    """A run.

    Attributes:
        path: Its folder.
        settings: What it was made with.
        images: What it was trained on, with the note.
        train_images: How many it was trained on.
        result: How it ended; None if it has not.
        epochs_done: Epochs of which there are metrics.
        best_epoch: The first with the best accuracy on the validation images, if there are any.
    """

    path: Path
    settings: RunSettings
    images: str
    train_images: int
    result: dict[str, Any] | None
    epochs_done: int
    best_epoch: int | None

    @property
    def name(self) -> str:
        """That of the folder."""
        return self.path.resolve().name

    @property
    def finished(self) -> bool:
        """Whether it may claim an accuracy."""
        return self.result is not None and self.result["status"] == "finished"

    @property
    def accuracy(self) -> float | None:
        """Of the test images, if it is finished."""
        return self.result["test_accuracy"] if self.result and self.finished else None

    @property
    def correct(self) -> tuple[int, int] | None:
        """How many test images are classified correctly, of how many; if it is finished."""
        if self.accuracy is None or self.result is None:
            return None
        count = self.result["test_images"]
        return round(self.accuracy * count), count

    @property
    def accuracy_text(self) -> str:
        """The accuracy with its counts, or that the run is unfinished."""
        if self.correct is None:
            return f"unfinished, epoch {self.epochs_done} of {self.settings.training.epochs}"
        right, count = self.correct
        return f"{percent(self.accuracy)} ({right:,} of {count:,})"

    @property
    def tested_epoch(self) -> int | None:
        """The epoch with whose parameters the accuracy was measured; None if it is unfinished."""
        if not self.finished:
            return None
        chosen = self.settings.training.select == "best"
        return self.best_epoch if chosen else self.settings.training.epochs

    def described(self, epoch: int | None = None) -> str:
        """A line for a picture of one epoch, or of the whole training: run, accuracy and images.

        Where picture and accuracy are of different parameters, it says whose the accuracy is.
        """
        tested, last = self.tested_epoch, self.settings.training.epochs if epoch is None else epoch
        whose = "" if tested in (None, last) else f" with the parameters of epoch {tested}"
        what = "test accuracy " if self.finished else ""
        return f"run {self.name}: {what}{self.accuracy_text}{whose}, {self.images}"


def read_summary(path: Path) -> RunSummary:
    """The summary of the run in a folder; a ValueError if it is not one."""
    directory = RunDirectory(path)
    settings, images = directory.read_settings(), directory.read_images()
    name, note = images["name"], images["note"]
    lines, result = read_metrics(path), directory.read_result()
    for line in lines:
        require_kinds(line, {"epoch": int}, path / "metrics.jsonl", required=("epoch",))
    if result is not None and result["status"] == "finished":
        require_kinds(result, ENDED, path / RESULT, required=("test_accuracy", "test_images"))
    return RunSummary(
        path,
        settings,
        f"{name} ({note})" if note else name,
        images["train"],
        result,
        lines[-1]["epoch"] if lines else 0,
        best_epoch(lines),
    )


def best_epoch(lines: Sequence[dict[str, Any]]) -> int | None:
    """The first epoch with the best validation accuracy, which `select=best` tests.

    Epochs whose accuracy is null do not count.

    >>> best_epoch([{"epoch": n, "validation_accuracy": seen} for n, seen in ((1, 0.5), (2, 0.5))])
    1
    """
    validated = [line for line in lines if line.get("validation_accuracy") is not None]
    if not validated:
        return None
    return max(validated, key=lambda line: (line["validation_accuracy"], -line["epoch"]))["epoch"]


def title_of(path: Path, what: str, epoch: int | None = None) -> str:
    """The lines above a picture: what it shows, of which run; `epoch` if it shows only that."""
    return f"{what}\n{read_summary(path).described(epoch)}"


def encoder_settings(path: Path) -> EncoderSettings:
    """The settings of a run's model; a ValueError if it is not an encoder."""
    model = RunDirectory(path).read_settings().model
    if not isinstance(model, EncoderSettings):
        raise ValueError(
            f"the model of {path} is of kind={model.kind!r}, but expected 'encoder'; `curves` and "
            "`table` take it, the other commands take runs of an encoder"
        )
    return model


def head_numbers(path: Path) -> list[Numbers]:
    """For each layer the numbers of its heads, counted from 1.

    The heads of a pruned run have the numbers, and so the colours, that they had before.
    """
    stored = read_pruning(path)
    if stored is not None:
        return [tuple(layer) for layer in stored.kept]
    return [tuple(range(1, heads + 1)) for heads in encoder_settings(path).heads]


def percent(fraction: float | None) -> str:
    """A fraction in words.

    >>> percent(0.9381), percent(None)
    ('93.8 %', 'not measured')
    """
    return "not measured" if fraction is None else f"{100 * fraction:.1f} %"


@dataclass(frozen=True)
class Pruning:
    """What pruning a run did, or is about to do: `pruning.json`.

    Attributes:
        source: Of the run that was pruned, `config` and `result` as its folder holds them, and
            `images_sha256`, the digest of its images.
        thresholds: `largest` and `condition`, by which heads were degenerate.
        kept: For each layer the numbers of its heads, counted from 1 in the run that nothing had
            been pruned from.
        removed: How many heads were removed, for each layer.
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

    def differences(self, stored: "Pruning") -> list[str]:
        """The names of the fields that say what was pruned and differ in a stored one."""
        names = ("thresholds", "kept", "removed", "epochs_before")
        differing = [name for name in names if getattr(self, name) != getattr(stored, name)]
        of_source = ("config", "images_sha256")
        different = [name for name in of_source if self.source[name] != stored.source[name]]
        return differing + [f"source.{name}" for name in different]


def read_pruning(folder: Path) -> Pruning | None:
    """What the folder of a run says of its pruning; None if it was not made by pruning.

    Raises:
        ValueError: For a file that is damaged.
    """
    stored = RunDirectory(folder).read_pruning()
    if stored is None:
        return None
    where = folder / PRUNING
    require_kinds(stored, PRUNED, where, required=[*PRUNED])
    require_kinds(stored["source"], PRUNED_RUN, f"{where}, source", required=[*PRUNED_RUN])
    require_kinds(stored["thresholds"], dict.fromkeys(stored["thresholds"], float), where)
    for name, listed in (("kept", stored["kept"]), ("removed", [stored["removed"]])):
        if not all(isinstance(layer, list) and all(map(_is_count, layer)) for layer in listed):
            raise ValueError(
                f"{where}: {name} is {brief(stored[name])}, but expected numbers of heads for each "
                "layer; it was damaged, or written by another version: prune again into a new "
                "folder"
            )
    if not len(stored["kept"]) == len(stored["removed"]) == len(encoder_settings(folder).heads):
        raise ValueError(
            f"{where} speaks of {len(stored['kept'])} and {len(stored['removed'])} layers, but "
            f"expected the {len(encoder_settings(folder).heads)} of the model; prune again into a "
            "new folder"
        )
    return Pruning(**{name: stored[name] for name in PRUNED})


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0
