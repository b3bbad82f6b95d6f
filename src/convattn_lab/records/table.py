"""Accuracies and sizes of runs, like Tables 1 and 4 of C20."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from rich.table import Table

from convattn.data.cifar10_slice import SIDE
from convattn.files import brief
from convattn.settings import MAX_SIDE
from convattn_lab.analysis.run_summary import RunSummary, percent, read_pruning, read_summary
from convattn_lab.models.settings import EncoderSettings, ResNetSettings
from convattn_lab.models.sizes import abstract_model, flop_count, parameter_count
from convattn_lab.records.experiments import THRESHOLDS, differences, paper_settings
from convattn_lab.runs.directory import RunDirectory
from convattn_lab.settings import to_json

PRUNED = (7, 5, 8, 7, 3, 9)  # 9 heads in each layer, without [2, 4, 1, 2, 6, 0]
PRINTED: tuple[tuple[EncoderSettings | ResNetSettings, float], ...] = (
    (ResNetSettings(), 0.938),
    (EncoderSettings("quadratic"), 0.938),
    (EncoderSettings("gaussian"), 0.934),
    (EncoderSettings("gaussian", heads=PRUNED), 0.934),
    (EncoderSettings("learned"), 0.918),
    (EncoderSettings("content"), 0.871),
)
MAX_EPOCHS_AFTER = 30  # epochs after pruning, "a few" in the paper
MAX_CLASSES = 256  # a label is one byte
COLUMNS = ("run", "accuracy", "paper", "parameters", "FLOPs", "FLOPs with A·X", "images", "remarks")


@dataclass(frozen=True)
class TableRow:
    """One run.

    Attributes:
        name: The run's.
        accuracy: Of the test images; None if the run is unfinished.
        correct, test_images: How many of how many; None likewise.
        accuracy_text: These in words.
        paper: The accuracy that C20 prints for this model, if it is one of its.
        parameters: Numbers that are trained.
        flops: Of one image's forward pass, linear maps and convolutions, which C20 counts.
        flops_with_mixing: With the products of tokens with tokens.
        images: What it was trained on, with the note.
        remarks: In what the run differs from the paper's, where `paper` is given.
    """

    name: str
    accuracy: float | None
    correct: int | None
    test_images: int | None
    accuracy_text: str
    paper: float | None
    parameters: int
    flops: int
    flops_with_mixing: int
    images: str
    remarks: str

    def cells(self) -> tuple[str, ...]:
        """As text, in the order of `COLUMNS`."""
        return (
            self.name,
            self.accuracy_text,
            "–" if self.paper is None else percent(self.paper),
            short(self.parameters),
            short(self.flops),
            short(self.flops_with_mixing),
            self.images,
            self.remarks or "–",
        )

    def to_json(self) -> dict[str, Any]:
        """All numbers, unrounded."""
        return asdict(self)


def table_row(path: Path) -> TableRow:
    """The row of a run; it claims an accuracy only if it is finished."""
    run = read_summary(path)
    model, shape = run.settings.model, _read_shape(path)
    flops = flop_count(model, **shape._asdict())
    paper = _printed_accuracy(run, shape)
    right, count = run.correct or (None, None)
    return TableRow(
        run.name,
        run.accuracy,
        right,
        count,
        run.accuracy_text,
        paper,
        parameter_count(abstract_model(model, **shape._asdict())),
        flops.maps,
        flops.total,
        run.images,
        "" if paper is None else "; ".join(_remarks(run)),
    )


class _ImageShape(NamedTuple):
    classes: int
    image_size: tuple[int, int]


def _read_shape(path: Path) -> _ImageShape:
    """What the sizes of a run's model depend on."""
    images = RunDirectory(path).read_images()
    try:
        size, classes = images["size"], images["classes"]
    except KeyError as missing:
        raise ValueError(
            f"run.json of {path} does not say {missing} of its images, so that the sizes of the "
            "model are not known; the run was made by an earlier version"
        ) from missing
    sides = [side for side in size if type(side) is int and 1 <= side <= MAX_SIDE]
    if len(sides) != 2 or sides != size or not 1 <= classes <= MAX_CLASSES:
        raise ValueError(
            f"run.json of {path} says that its images have the size {brief(size)} and {classes} "
            f"classes, but expected two sides of 1 to {MAX_SIDE:,} pixels and 1 to "
            f"{MAX_CLASSES} classes; the file was damaged: put the one back that the run wrote"
        )
    return _ImageShape(classes, (sides[0], sides[1]))


def _printed_accuracy(run: RunSummary, shape: _ImageShape) -> float | None:
    """What C20 prints for this architecture on CIFAR-10, or None.

    Initialisation, dropout and normalisation are not compared: `_remarks` says where they differ.
    """
    if shape != (10, (SIDE, SIDE)) or not re.match(r"CIFAR-10\b", run.images):
        return None
    return next((printed for model, printed in PRINTED if same(model, run.settings.model)), None)


def same(one: object, other: object) -> bool:
    """Whether the settings of two models, of any kinds, have the same arrays.

    >>> same(EncoderSettings(), EncoderSettings(dropout=0.0))
    True
    >>> same(EncoderSettings(), ResNetSettings())
    False
    """
    if not (isinstance(one, EncoderSettings) and isinstance(other, EncoderSettings)):
        return one == other
    fields = ("encoding", "heads", "width", "inner", "downsampling")
    return all(getattr(one, field) == getattr(other, field) for field in fields)


def _remarks(run: RunSummary) -> list[str]:
    """In what a run differs from the paper's, with settings called as their options are.

    What changes only the random numbers, the rounding or the bookkeeping is left out.
    """
    model, pruning = run.settings.model, read_pruning(run.path)
    expected = paper_settings("quadratic")
    remarks = []
    if not isinstance(model, EncoderSettings):
        expected = replace(expected, model=ResNetSettings())
    elif pruning is None:
        expected = paper_settings(model.encoding, model.heads)
        remarks += ["not pruned, but trained with so few heads"] if model.heads == PRUNED else []
    else:
        epochs = min(run.settings.training.epochs, MAX_EPOCHS_AFTER)
        expected = paper_settings(model.encoding, model.heads, epochs=epochs, rate=0.01)
        before = [left + count for left, count in zip(model.heads, pruning.removed, strict=True)]
        source = differences(paper_settings(model.encoding, before), pruning.source["config"])
        remarks += [f"pruned from a run whose {difference}" for difference in source]
        if before != [9] * len(before):
            remarks.append(f"pruned from {before} heads, not 9 in each layer")
        if pruning.thresholds != THRESHOLDS:
            remarks.append(f"pruned by the thresholds {pruning.thresholds}")
    return remarks + differences(expected, to_json(run.settings))


def short(count: int) -> str:
    """A count with three digits and its unit.

    >>> short(12_086_844), short(6_175_752_000), short(910), short(999_999)
    ('12.1M', '6.18B', '910', '1.00M')
    """
    count = round(count, min(0, 3 - len(str(count))))
    for unit, size in (("B", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= size:
            return f"{count / size:.{3 - len(str(count // size))}f}{unit}"
    return str(count)


def rich_table(rows: Sequence[TableRow]) -> Table:
    """For a terminal."""
    table = Table(*COLUMNS)
    for row in rows:
        table.add_row(*row.cells())
    return table


def markdown_table(rows: Sequence[TableRow]) -> str:
    """For a document."""
    lines = [COLUMNS, ("---",) * len(COLUMNS), *(row.cells() for row in rows)]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )
