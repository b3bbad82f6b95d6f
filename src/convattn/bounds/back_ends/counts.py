"""How many roundings lie on the longest path of any back end: the counts of `bounds.py`."""

import math
from typing import NamedTuple

import numpy as np

from convattn.bounds.back_ends.scores import score_roundings
from convattn.encodings.layer import AttentionLayer
from convattn.encodings.scalar import ScalarEncoding
from convattn.fast.maps import out_features
from convattn.operators.roundoff import EXP_ERROR, gamma
from convattn.operators.shifts import TokenGrid


class Roundings(NamedTuple):
    """The relative errors of the parts of a path.

    Attributes:
        unit, tiny: The unit roundoff, and the smallest normal number.
        score: γ of a score and of a derivative of it.
        weight: κ, the logarithm of the factor by which a weight is off beside its scores.
        values, maps, parameters: e^ρ - 1 of values, of the gradients of tokens and maps, and of
            those of the parameters of scores and gains.
        score_terms, axes: n_s, and the number of axes.
        terms: The product of the lengths of all sums.
    """

    unit: float
    tiny: float
    score: float
    weight: float
    values: float
    maps: float
    parameters: float
    score_terms: float
    axes: float
    terms: float


def count_roundings(
    layer: AttentionLayer,
    grid: TokenGrid,
    batch: int,
    features: int,
    unit: float,
    tiny: float,
) -> Roundings:
    """The counts of `bounds.py`, as relative errors.

    Raises:
        ValueError: Where they add up to one or more, so that nothing can be said.
    """
    queries, keys, heads = math.prod(grid.queries), grid.number_of_keys, layer.heads
    width = features if layer.value is None else layer.value.shape[2]
    out, axes = out_features(layer, features), len(grid.queries)
    entries = len(getattr(layer.encoding, "offsets", ()))
    score_terms = score_roundings(layer, features)
    values = heads * (features + width + keys + entries) + width + 32
    maps = values + heads * (queries + out) + batch * (queries + keys)
    parameters = maps + batch * queries * (keys + features + width + out)
    parameters += 2 * (keys + entries + score_terms) + 64
    if layer.content is not None and layer.content.tables is not None:
        parameters += batch * heads * queries * keys
    of_exponents = 2 * math.atanh(EXP_ERROR * unit) - math.log1p(-gamma(keys + entries + 8, unit))
    gain = 0.0
    if isinstance(layer.encoding, ScalarEncoding):
        parts = layer.encoding.exponents, layer.encoding.log_bases
        height = math.prod(float(np.abs(np.asarray(part)).max()) for part in parts)
        gain = gamma(EXP_ERROR + 3, unit) * height + math.atanh(EXP_ERROR * unit)
        gain += math.log1p(gamma(entries + 3, unit))

    def relative(count: int) -> float:
        return math.expm1(gain + math.log1p(gamma(count, unit)))

    return Roundings(
        unit=unit,
        tiny=tiny,
        score=gamma(score_terms, unit),
        weight=axes * (of_exponents + 8 * unit),
        values=relative(values),
        maps=relative(maps),
        parameters=relative(parameters),
        score_terms=score_terms,
        axes=axes,
        terms=32.0 * batch * queries * keys**2 * heads * features * width * out * score_terms,
    )
