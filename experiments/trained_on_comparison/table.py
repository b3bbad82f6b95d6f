"""What the compiled networks were before training on, and what training on changed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from initialization_comparison.table import Row, interval

from convattn.files import parse_json, read_file
from trained_on_comparison.trials import COMPILED, EXACT


def read_networks(folder: Path) -> dict[int, Mapping[str, Any]]:
    """What was measured of the network of each seed.

    Raises:
        ValueError: For a file that is no such record.
    """
    networks = {}
    for path in sorted((folder / "networks").glob("*.json")):
        try:
            record = parse_json(read_file(path))
            if record["schema"] != 1:
                raise KeyError("schema")
            networks[int(record["seed"])] = record
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{path} is no record of experiments/trained_on.py ({error}); remove it, and the "
                "network is measured again"
            ) from error
    return networks


def print_networks(
    networks: Mapping[int, Mapping[str, Any]], table_rows: Sequence[Row], out: Any
) -> None:
    """Means over the seeds that are compared, with 95 % intervals."""
    own = next((row for row in table_rows if row.initializer == COMPILED), None)
    if own is None:
        return
    seeds = [seed for seed in own.accuracies if seed in networks]
    after = [own.accuracies[seed] for seed in seeds]
    cnn = [networks[seed]["accuracy"] for seed in seeds]
    out.print(f"the CNN: {_percent(cnn)} of the test images")
    for name in (COMPILED, EXACT):
        records = [networks[seed][name] for seed in seeds]
        phrases = [
            f"{name}, before training on: {_percent([record['accuracy'] for record in records])}"
        ]
        phrases += [f"same class {_percent([record['same_class'] for record in records])}"]
        for what in ("difference", "largest", "construction", "gradient"):
            numbers = [record[what] for record in records]
            phrases.append(f"{what} {min(numbers):.3g} to {max(numbers):.3g}")
        for what in ("norm", "slope", "sharpness"):
            numbers = [record["constants"][what] for record in records]
            phrases.append(f"{what} {min(numbers):.3g} to {max(numbers):.3g}")
        out.print("; ".join(phrases))
    before = [networks[seed][COMPILED]["accuracy"] for seed in seeds]
    for words, others in (("before", before), ("the CNN", cnn)):
        gains = [one - other for one, other in zip(after, others, strict=True)]
        out.print(f"trained on less {words}: {_percent(gains, sign=True)} points")
    for layer, (first, last) in enumerate(zip(*_distances(own), strict=True), 1):
        out.print(f"distance of layer {layer}: {first:.2f} → {last:.2f}")


def _percent(values: Sequence[float], *, sign: bool = False) -> str:
    mean, half = interval(values)
    return f"{100 * mean:{'+' if sign else ''}.1f} ± {100 * half:.1f}"


def _distances(row: Row) -> tuple[list[float], list[float]]:
    """Of each layer, before and after, means over seeds; NaN where a run diverged."""
    both = [
        np.mean(
            [np.asarray(result.snapshots[at].distance, float) for result in row.results], axis=0
        )
        for at in (0, -1)
    ]
    return both[0].tolist(), both[1].tolist()
