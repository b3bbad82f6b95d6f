"""The tables of a comparison: where each beginning led, and what could learn at that moment.

An accuracy is the mean over the seeds, ± the standard deviation of one run (with n - 1). It says
how runs scatter, not how sure the mean is. Two ways to begin are compared seed by seed, on the same
first phase and the same test images: the mean of the differences, with the 95 % interval of
Student's t. That interval knows the chance of training, not that of drawing these test images.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from convattn_lab.runs.directory import RunDirectory
from convattn_lab.training.metrics import read_metrics
from convattn_lab.two_phase.gradient_norms import GROUPS, REST
from convattn_lab.two_phase.settings import (
    CONTROLS,
    RANDOM,
    TITLES,
    ComparisonSettings,
)
from two_phase_comparison.comparison import ComparisonDirectory

REFERENCE = ("limit-40", "with")


def comparison_rows(
    settings: ComparisonSettings, directory: ComparisonDirectory
) -> list[dict[str, Any]]:
    """One row for each way to train, with what each seed gave; None where a run is not finished."""
    ways: list[tuple[str, str, str | None]] = [("phase1", "phase one", None)]
    ways += [
        (f"{start}-{warmup}", TITLES[start], warmup)
        for start in settings.starts
        for warmup in settings.warmups
    ]
    ways += [(name, title, None) for name, title in CONTROLS.items() if settings.controls]
    rows = []
    for name, title, warmup in ways:
        runs = [run_figures(directory.run(seed, name)) for seed in settings.seeds]
        row: dict[str, Any] = {"name": name, "title": title, "warmup": warmup, "runs": runs}
        for quantity in ("accuracy", "loss", "train_loss", "converted"):
            row[quantity] = mean_and_deviation([run[quantity] for run in runs])
        rows.append(row)
    return rows


def run_figures(path: Path) -> dict[str, Any]:
    """What a run gave: accuracy, losses, and what it was converted to before its first step."""
    directory, lines = RunDirectory(path), read_metrics(path)
    result, conversion = directory.read_result() or {}, directory.read_conversion()
    finished = result if result.get("status") == "finished" else {}
    test = conversion["test"] if conversion else {}
    return {
        "accuracy": finished.get("test_accuracy"),
        "loss": finished.get("test_loss"),
        "train_loss": lines[-1]["train_loss"] if finished and lines else None,
        "converted": test.get("after"),
        "changed": test.get("changed"),
        "seconds": result.get("seconds"),
        "test_images": result.get("test_images"),
    }


def mean_and_deviation(values: Sequence[float | None]) -> dict[str, float | int | None]:
    """Mean and standard deviation of one, of the values that there are.

    >>> mean_and_deviation([1.0, 3.0, None])
    {'mean': 2.0, 'deviation': 1.4142135623730951, 'count': 2}
    >>> mean_and_deviation([1.0])["deviation"] is None
    True
    """
    known = [value for value in values if value is not None]
    if not known:
        return {"mean": None, "deviation": None, "count": 0}
    spread = float(np.std(known, ddof=1)) if len(known) > 1 else None
    return {"mean": float(np.mean(known)), "deviation": spread, "count": len(known)}


def paired_difference(
    row: dict[str, Any], reference: dict[str, Any], quantity: str
) -> dict[str, float | int | None]:
    """The mean of the differences to another row, seed by seed, with half its 95 % interval.

    >>> one, other = ({"runs": [{"loss": a}, {"loss": b}]} for a, b in ((1.0, 3.0), (0.0, 1.0)))
    >>> paired_difference(one, other, "loss")["mean"]
    1.5
    """
    pairs = zip(row["runs"], reference["runs"], strict=True)
    gains = [
        one[quantity] - other[quantity]
        for one, other in pairs
        if one[quantity] is not None and other[quantity] is not None
    ]
    if len(gains) < 2:
        return {"mean": gains[0] if gains else None, "half": None, "count": len(gains)}
    from scipy.stats import t

    half = t.ppf(0.975, len(gains) - 1) * np.std(gains, ddof=1) / math.sqrt(len(gains))
    return {"mean": float(np.mean(gains)), "half": float(half), "count": len(gains)}


def gradient_rows(
    settings: ComparisonSettings, directory: ComparisonDirectory
) -> list[dict[str, Any]]:
    """For each conversion the gradient norms at its moment, for each seed."""
    rows = []
    for start in settings.starts:
        if start == RANDOM:
            continue
        name = f"{start}-{settings.warmups[0]}"
        runs = [RunDirectory(directory.run(seed, name)) for seed in settings.seeds]
        stored = [conversion for run in runs if (conversion := run.read_conversion())]
        gradients = [conversion["gradients"] for conversion in stored]
        groups = {
            group: {
                **mean_and_deviation([gradient[group]["norm"] for gradient in gradients]),
                "zeros": [gradient[group]["zeros"] for gradient in gradients],
                "parameters": gradients[0][group]["parameters"],
            }
            for group in (*GROUPS, REST)
            if gradients
        }
        rows.append({"name": start, "title": TITLES[start], "groups": groups})
    return rows


def markdown(rows: list[dict[str, Any]], gradients: list[dict[str, Any]], seeds: int) -> str:
    """Both tables as Markdown."""
    in_percent: Any = {"scale": 100, "form": ".1f"}
    reference = next((r for r in rows if r["name"] == "-".join(REFERENCE)), None)
    head = ["begins with", "warm-up", "accuracy before", "accuracy", "against L21's", "test loss"]
    lines = [f"Seeds: {seeds}. Accuracies are mean ± standard deviation of a run, in %.", ""]
    lines += [table_line(head), table_line(["---"] * len(head))]
    for row in rows:
        against = ""
        if reference is not None and row is not reference and row["warmup"] is not None:
            against = text_of(
                paired_difference(row, reference, "accuracy"), "half", scale=100, form="+.1f"
            )
        cells = [row["title"], row["warmup"] or "", text_of(row["converted"], **in_percent)]
        cells += [text_of(row["accuracy"], **in_percent), against, text_of(row["loss"])]
        lines.append(table_line(cells))
    if any(row["groups"] for row in gradients):
        names = [*GROUPS, REST]
        lines += [
            "",
            "Norms of the gradients at the moment of conversion, mean over the seeds.",
            "",
        ]
        lines += [table_line(["conversion", *names]), table_line(["---"] * (1 + len(names)))]
        for row in gradients:
            if row["groups"]:
                cells = [gradient_text(row["groups"][name]) for name in names]
                lines.append(table_line([row["title"], *cells]))
    return "\n".join(lines) + "\n"


def table_line(cells: Sequence[str]) -> str:
    """A line of a table in Markdown.

    >>> table_line(["a", "b"])
    '| a | b |'
    """
    return f"| {' | '.join(cells)} |"


def text_of(
    summary: dict[str, Any], spread: str = "deviation", *, scale: float = 1, form: str = ".3f"
) -> str:
    """A mean, with its deviation or half its interval if there is one.

    >>> text_of({"mean": 0.5, "deviation": 0.01, "count": 2}, scale=100, form=".1f")
    '50.0 ± 1.0'
    >>> text_of({"mean": -0.01, "half": None, "count": 1}, "half", scale=100, form="+.1f")
    '-1.0'
    """
    if summary["mean"] is None:
        return ""
    beside = summary[spread]
    after = "" if beside is None else f" ± {scale * beside:{form.lstrip('+')}}"
    return f"{scale * summary['mean']:{form}}{after}"


def gradient_text(group: dict[str, Any]) -> str:
    """A norm; "0 exactly" where every derivative is zero in every seed.

    >>> gradient_text({"mean": 0.0, "zeros": [3, 3], "parameters": 3})
    '0 exactly'
    """
    if all(count == group["parameters"] for count in group["zeros"]):
        return "0 exactly"
    return f"{group['mean']:.2g}"
