"""What the results say: learning rates, means with intervals, differences seed by seed."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table
from scipy.stats import t as student

from convattn.diagnosis.picture import new_figure
from initialization_comparison.results import Result
from initialization_comparison.trials import INITIALIZERS, Trial

BASELINE = next(iter(INITIALIZERS))
LEVEL = 0.95


@dataclass(frozen=True)
class Row:
    """One initialiser at one number of training images.

    Attributes:
        accuracies: On the test images, by seed; of a run that diverged that of chance.
        mean, half: Their mean and half of its 95 % interval (Student's t over seeds; NaN for one).
        gain, gain_half: The same of the differences to truncated normal with the same seed.
        results: Of its runs.
    """

    initializer: str
    images: int
    accuracies: Mapping[int, float]
    mean: float
    half: float
    gain: float
    gain_half: float
    results: tuple[Result, ...]


def chosen_rates(results: Mapping[str, Result], trials: Sequence[Trial]) -> dict[str, float]:
    """Of each initialiser the learning rate with the least loss on validation images.

    Only of those whose tuning runs have all ended; a run that diverged is never chosen.
    """
    losses_of: dict[str, dict[float, float]] = {}
    expected = Counter(trial.initializer for trial in trials)
    for trial in trials:
        if trial.name in results:
            loss = results[trial.name].validation_loss
            losses = losses_of.setdefault(trial.initializer, {})
            losses[trial.learning_rate] = math.inf if loss is None else loss
    best = {
        name: min(losses, key=lambda rate: losses[rate])
        for name, losses in losses_of.items()
        if len(losses) == expected[name]
    }
    return {name: rate for name, rate in best.items() if math.isfinite(losses_of[name][rate])}


def describe_rate(name: str, rate: float, tried: Sequence[float]) -> str:
    """A line about a learning rate that was chosen of those tried.

    >>> describe_rate("mimetic", 0.002, (0.0005, 0.001, 0.002))
    'mimetic: learning rate 0.002, the largest of those tried'
    """
    ends = {min(tried): "least", max(tried): "largest"}
    end = f", the {ends[rate]} of those tried" if rate in ends else ""
    return f"{name}: learning rate {rate:g}{end}"


def rows(results: Mapping[str, Result], trials: Sequence[Trial]) -> list[Row]:
    """A row for each initialiser and number of images of which a run has ended."""
    groups: dict[tuple[int, str], dict[int, Result]] = {}
    for trial in trials:
        if trial.name in results:
            of_seeds = groups.setdefault((trial.images, trial.initializer), {})
            of_seeds[trial.seed] = results[trial.name]
    table_rows = []
    for (images, name), own in groups.items():
        accuracies = {seed: _accuracy(result) for seed, result in own.items()}
        usual = groups.get((images, BASELINE), {})
        gains = [value - _accuracy(usual[s]) for s, value in accuracies.items() if s in usual]
        mean, half = interval([*accuracies.values()])
        table_rows.append(
            Row(name, images, accuracies, mean, half, *interval(gains), (*own.values(),))
        )
    return table_rows


def _accuracy(result: Result) -> float:
    return 1 / result.classes if result.test_accuracy is None else result.test_accuracy


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and half the width of its 95 % interval.

    >>> interval([1.0, 3.0])[0], round(interval([1.0, 3.0])[1], 2)
    (2.0, 12.71)
    """
    if not values:
        return float("nan"), float("nan")
    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, float("nan")
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return mean, float(student.ppf((1 + LEVEL) / 2, len(values) - 1) * error)


def results_table(table_rows: Sequence[Row]) -> Table:
    """Accuracy in percent, the difference to truncated normal, and what the attention does."""
    table = Table(
        title="Test accuracy, mean over seeds with its 95 % interval",
        title_justify="left",
        caption_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    names = (
        "images",
        "initialisation",
        "seeds",
        "accuracy\n(%)",
        "difference\nto truncated\nnormal",
        "distance",
        "attention\ndistance",
        "gradient\nof scores",
        "seconds",
    )
    for name in names:
        side: Any = "left" if name == "initialisation" else "right"
        table.add_column(name, justify=side, no_wrap=name == "seeds")
    for row in table_rows:
        diverged = sum(result.diverged for result in row.results)
        first, last = (_measured(row, "distance", at) for at in (0, -1))
        near, far = (_measured(row, "attention_distance", at) for at in (0, -1))
        seconds = [result.seconds for result in row.results if result.seconds is not None]
        table.add_row(
            f"{row.images:,}",
            row.initializer,
            str(len(row.accuracies)) + (f"\n{diverged} diverged" if diverged else ""),
            _percent(row.mean, row.half),
            "–" if row.initializer == BASELINE else _percent(row.gain, row.gain_half, sign=True),
            f"{first:.2f} → {last:.2f}",
            f"{near:.1f} → {far:.1f}",
            f"{_measured(row, 'score_gradient', 0):.2g}",
            f"{np.mean(seconds):.0f}" if seconds else "–",
        )
    table.caption = (
        "distance: of a layer from the nearest 3 × 3 convolution, mean over layers, before and "
        "after training; attention distance: in tokens, mean over heads; gradient of scores: its "
        "norm in W_Q and W_K before the first step; a run that diverged counts as chance"
    )
    return table


def _measured(row: Row, what: str, at: int) -> float:
    """The mean over runs, layers and heads in the first or the last snapshot."""
    values = [np.asarray(getattr(result.snapshots[at], what), float) for result in row.results]
    return float(np.mean(values))


def _percent(mean: float, half: float, *, sign: bool = False) -> str:
    first = f"{100 * mean:+.1f}" if sign else f"{100 * mean:.1f}"
    return first if np.isnan(half) else f"{first} ± {100 * half:.1f}"


def draw_results(table_rows: Sequence[Row], images: int) -> Any:
    """Over training, of one number of images: loss, accuracy and the distance of each layer.

    Means over the runs that did not diverge.
    """
    own = [row for row in table_rows if row.images == images]
    depth = max(len(row.results[0].snapshots[0].distance) for row in own)
    figure = new_figure(
        3.2 * (depth + 2), 3.2, title=f"{images:,} training images, mean over seeds"
    )
    loss, accuracy, *layers = figure.subplots(1, depth + 2)
    for number, row in enumerate(own):
        results = [result for result in row.results if not result.diverged]
        curves: dict[Any, list[Any]] = {
            loss: [[(p.epoch, p.train_loss) for p in result.curve] for result in results],
            accuracy: [
                [(p.epoch, p.validation_accuracy) for p in result.snapshots] for result in results
            ],
        }
        for layer, axes in enumerate(layers):
            curves[axes] = [
                [(p.epoch, p.distance[layer]) for p in result.snapshots] for result in results
            ]
        for axes, lines in curves.items():
            if not lines:
                continue
            how = {} if axes is loss else {"marker": "o", "markersize": 3}
            name = row.initializer if axes is loss else None
            mean = np.mean(np.array(lines, float), axis=0)
            axes.plot(*mean.T, color=f"C{number}", label=name, gid=f"curve-{number}", **how)
    loss.set(xlabel="epoch", ylabel="loss on training images, augmented")
    accuracy.set(xlabel="epoch", ylabel="accuracy on validation images")
    for layer, axes in enumerate(layers, 1):
        axes.set(xlabel="epoch", title=f"layer {layer}", ylim=(0, 1.02))
    layers[0].set_ylabel("distance to the nearest convolution")
    figure.legend(loc="outside lower center", ncols=len(own), fontsize=8)
    return figure
