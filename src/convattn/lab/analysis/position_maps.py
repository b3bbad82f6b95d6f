"""What a query attends to by the position alone: Figure 5 of C20."""

from pathlib import Path

import numpy as np

from convattn.lab.analysis.score_tables import query_attention, tokens_of
from convattn.lab.analysis.snapshot_layers import read_layers

Maps = list[np.ndarray]


def central_query(path: Path) -> tuple[int, int]:
    """The token in the middle of a run's images, below and right of it where sides are even."""
    _, layers = read_layers(path)
    rows, columns = tokens_of(layers[0]["scores"])
    return rows // 2, columns // 2


def position_maps(path: Path, query: tuple[int, int], epoch: int | None = None) -> tuple[int, Maps]:
    """The epoch, and for each layer the maps `[heads, rows, columns]` by the position alone.

    Where attention knows the content it is that of an image whose tokens are zero in every layer.

    Args:
        query: (row, column) of a token, counted from 0.
        epoch: That of `default_epoch` if not given.

    Raises:
        ValueError: For a run without attention or without that snapshot, and for a query outside
            the image.
    """
    chosen, layers = read_layers(path, epoch)
    return chosen, [query_attention(layer["scores"], query) for layer in layers]
