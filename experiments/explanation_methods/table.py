"""What the results say: means over models with intervals, as tables in Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from explanation_methods.distances import HeadDistance, block_distances
from explanation_methods.methods import METHODS, SEED, VARIANTS
from explanation_methods.results import METRICS, SHORTCUT, Result

SAMPLES, LEVEL = 10_000, 0.95
COLUMNS = tuple((group, metric) for group in ("logits", "tokens") for metric in METRICS)
TITLES = {"inside": "inside", "jacobian": "rank, derivative", "product": "rank, derivative × input"}
TAG_CASES = {2: "tag alone", 0: "spots and tag", 1: "spots alone"}  # with neither: left out


@dataclass(frozen=True)
class Mean:
    """A mean over models with its interval."""

    mean: float
    low: float
    high: float
    models: int

    def __str__(self) -> str:
        mean, low, high = (f"{round(n, 2) + 0.0:.2f}" for n in (self.mean, self.low, self.high))
        return f"{mean} [{low}, {high}]"


def mean_over_models(numbers: Sequence[float]) -> Mean:
    """With the percentile interval of bootstrap samples of the models, the same each time.

    >>> str(mean_over_models([0.5, 0.5]))
    '0.50 [0.50, 0.50]'
    """
    values = np.array(numbers, float)
    chosen = np.random.default_rng(SEED).integers(0, len(values), (SAMPLES, len(values)))
    means = values[chosen].mean(axis=1)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Mean(float(values.mean()), float(low), float(high), len(values))


def numbers_of(results: Sequence[Result], group: str, method: str, metric: str) -> list[float]:
    """Of each model in which it is defined."""
    own = (each["scores"].get(group, {}).get(method, {}).get(metric) for each in results)
    return [number for number in own if number is not None]


def tables(results: Sequence[Result]) -> str:
    """All tables, in Markdown."""
    parts = [main_table(results), depth_table(results), tag_table(results), distance_table(results)]
    return "\n".join(part for part in parts if part)


def main_table(results: Sequence[Result]) -> str:
    """A row for each method: fraction inside and rank correlations, of logits and of tokens."""
    models = [len(numbers_of(results, group, "random", metric)) for group, metric in COLUMNS]
    titles = [
        f"{group}: {TITLES[metric]} ({count} models)"
        for (group, metric), count in zip(COLUMNS, models, strict=True)
    ]
    rows = []
    for method in METHODS + VARIANTS:
        cells = [_cell(numbers_of(results, *_key(column, method))) for column in COLUMNS]
        blank = [str(_blank(results, group, method)) for group in ("logits", "tokens")]
        rows.append([method, *cells, ", ".join(blank)])
    counted = "".join(
        f"\n{group}: {_count(results, group, 'cases')} cases, of which "
        f"{_count(results, group, 'zero derivative')} have no derivative and are left out; of the "
        f"others {_count(results, group, 'whole field')} have a field of the whole image.\n"
        for group in ("logits", "tokens")
    )
    return markdown(["method", *titles, "blank maps: logits, tokens"], rows) + counted


def _key(column: tuple[str, str], method: str) -> tuple[str, str, str]:
    return column[0], method, column[1]


def depth_table(results: Sequence[Result]) -> str:
    """The fraction inside the field of tokens, by the number of blocks before them."""
    groups = sorted({group for each in results for group in each["scores"] if " " in group})
    models = [len(numbers_of(results, group, "random", "inside")) for group in groups]
    titles = [f"{group} ({count} models)" for group, count in zip(groups, models, strict=True)]
    rows = [
        [method, *(_cell(numbers_of(results, group, method, "inside")) for group in groups)]
        for method in METHODS + VARIANTS
    ]
    return markdown(["inside", *titles], rows)


def tag_table(results: Sequence[Result]) -> str:
    """On the shortcut's images, the fraction of each map on the tag's pixel, and its rank."""
    own = [each["maps"] for each in results if each["name"] == SHORTCUT]
    if not own:
        return ""
    rows = []
    for name, maps in own[0].items():
        cells = [tag_cell(np.array(maps[case])) for case in TAG_CASES]
        rows.append([name, *cells])
    return markdown(["fraction on the tag; its place", *TAG_CASES.values()], rows)


def tag_cell(shares: np.ndarray) -> str:
    """The fraction of a map on its first token, and how many tokens have as much or more.

    >>> tag_cell(np.array([0.25, 0.5, 0.25])), tag_cell(np.zeros(2))
    ('0.25; 3 of 3', 'blank')
    """
    if not shares.any():
        return "blank"
    return f"{shares[0]:.2f}; {(shares >= shares[0]).sum()} of {len(shares)}"


def distance_table(results: Sequence[Result]) -> str:
    """Measured and true mean attention distances, by the kind of head, and of blocks."""
    blocks = all_blocks(results)
    rows = []
    for kind in dict.fromkeys(_kind(head) for block in blocks for head in block):
        own = [head for block in blocks for head in block if _kind(head) == kind]
        measured = [head.measured for head in own if head.measured is not None]
        pairs = [
            abs(h.measured - h.true) for h in own if h.measured is not None and h.true is not None
        ]
        true = [head.true for head in own if head.true is not None]
        rows.append(
            [
                kind,
                str(len(own)),
                f"{np.mean(measured):.2f}" if measured else "none",
                f"{np.mean(true):.2f}" if true else "none",
                f"{max(pairs):.2f}" if pairs else "–",
            ]
        )
    both = [pair for pair in map(block_distances, blocks) if pair]
    if both:
        means = np.mean(both, axis=0)
        largest = max(abs(a - b) for a, b in both)
        row = [str(len(both)), f"{means[0]:.2f}", f"{means[1]:.2f}", f"{largest:.2f}"]
        rows.append(["blocks, mean over heads", *row])
    titles = ["heads", "number", "measured distance", "true distance", "largest difference"]
    return markdown(titles, rows)


def all_blocks(results: Sequence[Result]) -> list[list[HeadDistance]]:
    """Of all models."""
    return [
        [HeadDistance(**head) for head in heads] for each in results for heads in each["distances"]
    ]


def _kind(head: HeadDistance) -> str:
    if head.true is None and head.kind != "unused":
        return "of the class token"
    return f"{head.kind}, {head.border}" if head.kind == "offset" else head.kind


def _cell(numbers: Sequence[float]) -> str:
    return str(mean_over_models(numbers)) if numbers else "–"


def _blank(results: Sequence[Result], group: str, method: str) -> int:
    return sum(each["scores"][group][method]["blank"] for each in results)


def _count(results: Sequence[Result], group: str, what: str) -> int:
    return sum(each["counts"][group][what] for each in results)


def markdown(titles: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table in Markdown, numbers to the right.

    >>> print(markdown(["a", "b"], [["x", "1"]]))
    | a | b |
    |---|---:|
    | x | 1 |
    <BLANKLINE>
    """
    head, *body = (f"| {' | '.join(map(str, cells))} |" for cells in (titles, *rows))
    return "\n".join([head, f"|---|{'---:|' * (len(titles) - 1)}", *body]) + "\n"
