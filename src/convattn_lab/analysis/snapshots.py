"""The snapshots of a run, layer by layer, and the attention that they say.

A snapshot holds for each head a table of positional scores s[δ_1 + n_1 - 1, δ_2 + n_2 - 1] for the
shifts |δ_a| < n_a of an image of n_1 × n_2 tokens. A query at (r, c) sees the key (k_1, k_2) at the
shift (k_1 - r, k_2 - c), so that its scores are the block of n_1 × n_2 numbers that begins at
(n_1 - 1 - r, n_2 - 1 - c).
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

from convattn.files import brief
from convattn_lab.analysis.run_summary import encoder_settings, read_summary
from convattn_lab.training.snapshots import read_snapshot, snapshot_epochs

Layer = dict[str, np.ndarray]
Query = tuple[int, int]
SHAPES: dict[str, tuple[int | None, ...]] = {  # behind the heads; None for an odd number of shifts
    "scores": (None, None),
    "centers": (2,),
    "root_precision": (2, 2),
}


def require_snapshots(path: Path) -> list[int]:
    """The epochs of a run's snapshots; a ValueError if there are none."""
    encoder_settings(path)
    epochs = snapshot_epochs(path)
    if not epochs:
        raise ValueError(
            f"{path} has no snapshots of the attention yet; the first is taken when training begins"
        )
    return epochs


def read_layers(path: Path, epoch: int | None = None) -> tuple[int, list[Layer]]:
    """The epoch of a snapshot, and the arrays of each layer.

    Args:
        path: The folder of a run of an encoder.
        epoch: If not given the one nearest to that of the parameters that were tested, which is the
            newest unless the run selects the best epoch.

    Raises:
        ValueError: For another model, and if there is no snapshot of that epoch.
    """
    epochs = require_snapshots(path)
    if epoch is None:
        tested = read_summary(path).tested_epoch
        target = epochs[-1] if tested is None else tested
        epoch = min(epochs, key=lambda each: (abs(each - target), -each))
    heads = encoder_settings(path).heads
    layers: list[Layer] = [{} for _ in heads]
    names = {f"layer{number}": layer for number, layer in enumerate(layers, 1)}
    for name, array in read_snapshot(path, epoch).items():
        layer, _, array_name = name.partition(".")
        if layer not in names:
            raise _damaged(path, epoch, f"{brief(name)} is of no layer of {len(layers)}")
        names[layer][array_name] = array
    for number, (count, arrays) in enumerate(zip(heads, layers, strict=True), 1):
        for array_name, sides in SHAPES.items():
            stored = arrays.get(array_name)
            if stored is None and array_name == "scores":
                raise _damaged(path, epoch, f"layer{number}.{array_name} is missing")
            if stored is not None and not _fits(stored, (count, *sides)):
                raise _damaged(
                    path, epoch, f"layer{number}.{array_name} is {stored.dtype} {stored.shape}"
                )
    return epoch, layers


def _fits(array: np.ndarray, sides: tuple[int | None, ...]) -> bool:
    """Whether it holds floats, and its sides are those, or odd where they are those of shifts."""
    return (
        array.dtype.kind == "f"
        and array.ndim == len(sides)
        and all(
            s == w or (w is None and s % 2 == 1) for s, w in zip(array.shape, sides, strict=True)
        )
    )


def _damaged(path: Path, epoch: int, what: str) -> ValueError:
    return ValueError(
        f"{path}: in the snapshot of epoch {epoch}, {what}, but expected floats of each head, as "
        "its settings say; the file was damaged: give another --epoch, or train the run anew"
    )


def spread_epochs(epochs: Sequence[int], count: int) -> list[int]:
    """At most `count` ≥ 2 epochs, the first and the last among them, closer at the beginning.

    Between them the quotients are as equal as the epochs allow.

    >>> spread_epochs(range(0, 301, 5), 6)
    [0, 5, 15, 40, 110, 300]
    >>> spread_epochs([0, 1, 2], 6)
    [0, 1, 2]
    """
    known = sorted(epochs)
    if len(known) <= count:
        return known
    rest = [epoch for epoch in known if epoch > known[0]]
    shifted = np.array(rest) - known[0]
    targets = np.geomspace(shifted[-1], shifted[0], count - 1)
    chosen = {rest[int(np.argmin(np.abs(shifted - target)))] for target in targets}
    return [known[0], *sorted(chosen)]


def tokens_of(scores: Float[np.ndarray, "heads row_shifts column_shifts"]) -> tuple[int, int]:
    """The rows and columns of the image.

    >>> tokens_of(np.zeros((9, 31, 15)))
    (16, 8)
    """
    rows, columns = ((side + 1) // 2 for side in scores.shape[1:])
    return rows, columns


def central_query(path: Path) -> Query:
    """The token in the middle of a run's images, below and right of it where sides are even."""
    _, layers = read_layers(path)
    rows, columns = tokens_of(layers[0]["scores"])
    return rows // 2, columns // 2


def require_query(query: Query, tokens: tuple[int, int]) -> None:
    """Refuse a query outside the image."""
    if any(not 0 <= index < side for index, side in zip(query, tokens, strict=True)):
        raise ValueError(
            f"query {query[0]} {query[1]}, but rows are 0 to {tokens[0] - 1} and columns 0 to "
            f"{tokens[1] - 1}: tokens are counted, not pixels"
        )


def query_attention(
    scores: Float[np.ndarray, "heads row_shifts column_shifts"],
    query: Query,
    tokens: tuple[int, int] | None = None,
) -> Float[np.ndarray, "heads rows columns"]:
    """What a query (row, column) attends to, in float64; each head's numbers sum to one.

    With a ring around the `tokens` that ask, the keys are those of the ring too.

    >>> query_attention(np.zeros((1, 3, 3)), (0, 1)).tolist()
    [[[0.25, 0.25], [0.25, 0.25]]]
    """
    queries = tokens_of(scores) if tokens is None else tokens
    require_query(query, queries)
    keys = [side - count + 1 for side, count in zip(scores.shape[1:], queries, strict=True)]
    row, column = (count - 1 - index for count, index in zip(queries, query, strict=True))
    block = scores[:, row : row + keys[0], column : column + keys[1]]
    block = block.astype(np.float64)
    weights = np.exp(block - block.max(axis=(1, 2), keepdims=True))
    return weights / weights.sum(axis=(1, 2), keepdims=True)


def attention_matrix(
    scores: Float[np.ndarray, "heads row_shifts column_shifts"],
) -> Float[np.ndarray, "heads query_rows query_columns key_rows key_columns"]:
    """The attention of all queries, in float64."""
    rows, columns = tokens_of(scores)
    weights = np.empty((len(scores), rows, columns, rows, columns))
    if len(scores):
        for row, column in np.ndindex(rows, columns):
            weights[:, row, column] = query_attention(scores, (row, column))
    return weights
