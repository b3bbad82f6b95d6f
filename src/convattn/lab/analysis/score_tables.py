"""From a table of positional scores at every shift to attention.

A table holds s[δ_1 + n_1 - 1, δ_2 + n_2 - 1] for the shifts |δ_a| < n_a of an image of n_1 × n_2
tokens. A query at (r, c) sees the key (k_1, k_2) at the shift (k_1 - r, k_2 - c), so that its
scores are the block of n_1 × n_2 numbers that begins at (n_1 - 1 - r, n_2 - 1 - c).
"""

import numpy as np
from jaxtyping import Float


def tokens_of(scores: Float[np.ndarray, "heads row_shifts column_shifts"]) -> tuple[int, int]:
    """The rows and columns of the image.

    >>> tokens_of(np.zeros((9, 31, 15)))
    (16, 8)
    """
    rows, columns = ((side + 1) // 2 for side in scores.shape[1:])
    return rows, columns


def query_attention(
    scores: Float[np.ndarray, "heads row_shifts column_shifts"], query: tuple[int, int]
) -> Float[np.ndarray, "heads rows columns"]:
    """What a query attends to, in float64; each head's numbers sum to one.

    Args:
        query: (row, column), counted from 0.

    Raises:
        ValueError: For a query outside the image.

    >>> query_attention(np.zeros((1, 3, 3)), (0, 1)).tolist()
    [[[0.25, 0.25], [0.25, 0.25]]]
    """
    rows, columns = tokens_of(scores)
    check_query(query, (rows, columns))
    row, column = query
    block = scores[:, rows - 1 - row : 2 * rows - 1 - row, columns - 1 - column :][:, :, :columns]
    block = block.astype(np.float64)
    weights = np.exp(block - block.max(axis=(1, 2), keepdims=True))
    return weights / weights.sum(axis=(1, 2), keepdims=True)


def attention_matrix(
    scores: Float[np.ndarray, "heads row_shifts column_shifts"],
) -> Float[np.ndarray, "heads query_rows query_columns key_rows key_columns"]:
    """The attention of all queries, in float64."""
    rows, columns = tokens_of(scores)
    found = np.empty((len(scores), rows, columns, rows, columns))
    if not len(scores):
        return found
    for row in range(rows):
        for column in range(columns):
            found[:, row, column] = query_attention(scores, (row, column))
    return found


def check_query(query: tuple[int, int], tokens: tuple[int, int]) -> None:
    """Refuse a query outside the image.

    Raises:
        ValueError: As described above.
    """
    if any(not 0 <= place < side for place, side in zip(query, tokens, strict=True)):
        raise ValueError(
            f"query {query[0]} {query[1]}, but rows are 0 to {tokens[0] - 1} and columns 0 to "
            f"{tokens[1] - 1}: tokens are counted, not pixels"
        )
