"""What `convattn convert network` says of a conversion, and when it counts as right."""

from dataclasses import asdict
from typing import Any


def tolerance(report: Any, dtype: str) -> float:
    """√ε of the largest output: no bound, but what a wrong conversion exceeds."""
    import numpy as np

    return float(np.finfo(dtype).eps) ** 0.5 * (report.largest or 0.0)


def close(report: Any, dtype: str) -> bool:
    """Whether nothing exceeds its bound, and the outputs are near, of the same classes."""
    near = report.difference <= tolerance(report, dtype)
    return bool(report.passed is not False and report.same_class and near)


def report_numbers(report: Any) -> dict[str, Any]:
    """A report for JSON.

    Raises:
        ValueError: For outputs that are not finite.
    """
    import math

    if not math.isfinite(report.difference) or not math.isfinite(report.largest):
        raise ValueError(
            f"the outputs reach {report.largest} and differ by {report.difference}, but expected "
            "finite numbers; the weights overflow on these images: use others, or --dtype float64"
        )
    return {
        "layers": {layer.path: asdict(layer) for layer in report.layers},
        "left": list(report.left or ()),
        "difference": report.difference,
        "largest": report.largest,
        "same_class": report.same_class,
        "bound": report.bound,
        "entries": [list(entry) for entry in report.entries],
        "without_rule": report.without_rule,
    }


def report_lines(report: Any, dtype: str) -> list[str]:
    """A report in a few lines: its layers in one, its outputs, and what is left."""
    from convattn.networks.transformation.contents import is_opaque

    layers = report.layers
    heads = sorted({layer.heads for layer in layers})
    total = len(layers) + sum(not is_opaque(line) for line in report.left)
    bounded = [layer for layer in layers if layer.passed is not None]
    lines = [
        f"{len(layers)} of {total} convolutions -> attention layers of "
        f"{' and '.join(map(str, heads))} heads",
        f"{dtype}, {str(report).splitlines()[len(layers)].partition('; ')[2]}",
        *str(report).splitlines()[len(layers) + 1 :],
    ]
    if bounded:
        worst = max(bounded, key=lambda layer: layer.difference / (layer.bound or 1))
        fraction = worst.difference / worst.bound if worst.bound else 0.0
        where = f"at most {fraction:.2g} of it ({worst.path})"
        failed = [layer.path for layer in bounded if layer.passed is False]
        lines.append(
            f"NOT WITHIN their derived bounds: {', '.join(failed)}"
            if failed
            else f"each of {len(bounded)} layers is within its derived bound: {where}"
        )
    if len(bounded) < len(layers):
        lines.append(f"{len(layers) - len(bounded)} of {len(layers)} layers have no derived bound")
    return lines
