"""The figure: numbers by method, and the maps of one image."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from convattn.diagnosis.picture import new_figure
from explanation_methods.methods import METHODS
from explanation_methods.results import SHORTCUT, Result
from explanation_methods.table import mean_over_models, numbers_of

PANELS = (
    ("tokens", "inside", "tokens: fraction inside the true field"),
    ("tokens", "jacobian", "tokens: rank correlation with |J|"),
    ("logits", "jacobian", "logits: rank correlation with |J|"),
)
MAPS = ("derivative × input", *METHODS)
TAG_ALONE = 2  # the case


def draw(results: Sequence[Result]) -> Any:
    """A panel for each of three metrics; below, the maps of the image with the tag alone."""
    caption = (
        "Above: a dot for each model, the mean and its 95 % interval. Below: 22-shortcut, on the "
        "image whose tag in the upper left corner decides; the first map is the exact one. Each "
        "is divided by its largest number."
    )
    figure = new_figure(11, 4.6, title="Explanations of models with known answers", caption=caption)
    above, below = figure.subfigures(2, 1, height_ratios=(2.6, 1.6))
    for axes, panel in zip(above.subplots(1, len(PANELS), sharey=True), PANELS, strict=True):
        _draw_metric(axes, results, *panel)
    own = [each["maps"] for each in results if each["name"] == SHORTCUT]
    if own:
        for axes, name in zip(below.subplots(1, len(MAPS)), MAPS, strict=True):
            _draw_map(axes, name, np.array(own[0][name][TAG_ALONE]))
    return figure


def _draw_metric(axes: Any, results: Sequence[Result], group: str, metric: str, title: str) -> None:
    for place, method in enumerate(METHODS):
        numbers = numbers_of(results, group, method, metric)
        if not numbers:
            continue
        interval = mean_over_models(numbers)
        identity = f"{group}-{metric}-{place}"
        axes.plot(
            numbers, np.full(len(numbers), place), "o", markersize=3, alpha=0.3, color="C0",
            gid=f"models-{identity}",
        )  # fmt: skip
        axes.plot([interval.low, interval.high], [place, place], color="black", linewidth=1.5)
        axes.plot(
            [interval.mean], [place], "D", markersize=5, color="black", gid=f"mean-{identity}"
        )
    axes.set(title=title, ylim=(len(METHODS) - 0.5, -0.5))
    axes.title.set_fontsize(9)
    axes.axvline(0, color="grey", linewidth=0.5)
    axes.set_yticks(range(len(METHODS)), METHODS)
    axes.grid(axis="x", linewidth=0.3)


def _draw_map(axes: Any, name: str, shares: np.ndarray) -> None:
    side = round(len(shares) ** 0.5)
    axes.pcolormesh(shares.reshape(side, side), cmap="Blues", vmin=0, vmax=shares.max() or 1)
    axes.set(aspect="equal", xticks=[], yticks=[], ylim=(side, 0))
    axes.set_title(name, fontsize=8)
