"""Removing heads from the parameters of an encoder."""

from collections.abc import Sequence

import numpy as np

PER_HEAD = ("value", "centers", "spreads")
Parameters = dict[str, np.ndarray]


def attention_part(name: str) -> tuple[int, str] | None:
    """The layer, counted from 0, and the part of its attention that a parameter's name stands for.

    >>> attention_part("layers.3.attention.centers.value"), attention_part("classifier.bias.value")
    ((3, 'centers'), None)
    """
    words = name.split(".")
    if len(words) < 4 or words[0] != "layers" or words[2] != "attention":
        return None
    return int(words[1]), words[3]


def spreads_of_layers(parameters: Parameters, depth: int) -> list[np.ndarray]:
    """R with Σ⁻¹ = RᵀR of each layer's heads, `[heads, 2, 2]`; empty for a layer without heads.

    The quadratic encoding holds the a of R = a·I.
    """
    found: list[np.ndarray] = [np.zeros((0, 2, 2)) for _ in range(depth)]
    for name, array in parameters.items():
        place = attention_part(name)
        if place is not None and place[1] == "spreads":
            found[place[0]] = array if array.ndim == 3 else array[:, None, None] * np.eye(2)
    return found


def pruned_parameters(parameters: Parameters, removed: Sequence[np.ndarray]) -> Parameters:
    """The parameters of the model without these heads; all others are as they were.

    Args:
        parameters: By name, as `named_arrays` gives them.
        removed: For each layer which of its heads go, `[heads]` of bool. If all go, the layer has
            no parameters of heads left, only its bias.

    >>> parameters = {"layers.0.attention.centers": np.array([[1.0, 2.0], [3.0, 4.0]])}
    >>> pruned_parameters(parameters, [np.array([True, False])])
    {'layers.0.attention.centers': array([[3., 4.]])}
    """
    kept = {}
    for name, array in parameters.items():
        place = attention_part(name)
        if place is None or place[1] not in PER_HEAD:
            kept[name] = array
        elif not removed[place[0]].all():
            kept[name] = array[~removed[place[0]]]
    return kept
