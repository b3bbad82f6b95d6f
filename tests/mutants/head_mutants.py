"""Slips about the heads: which there are, and what they look at. Judged on images."""

from dataclasses import replace

import jax.numpy as jnp
import pytest
from mutants import subjects
from mutants.mutant import wrong_layer
from mutants.plants import DIFFER, change_result, heads, method

from convattn.constructions import conversion
from convattn.encodings.quadratic import printed_features, printed_target
from convattn.encodings.quadratic_grid import QuadraticGridEncoding

WITHOUT_CENTRE = [0, 1, 2, 3, 5, 6, 7, 8]


def printed_scores(right, self, shifts, number_of_keys):
    """C20 eq. 9 as printed, v·r_δ, in bfloat16.

    At Δ = 18 the score of δ = 17 is -(288 - 36·17)·α = 324·α, and so is that of δ = 18.
    """
    target = printed_target(self.head_alpha[:, 0], self.head_centers).astype(jnp.bfloat16)
    features = jnp.asarray(printed_features(shifts), jnp.bfloat16)
    return (target @ features.T).astype(jnp.float32)


def negated(arrays):
    return tuple(-array for array in arrays)


def column_first(encoding):
    """A head's centre as (column, row)."""
    swapped = tuple(pair[::-1] for pair in encoding.pairs)
    return replace(
        encoding, alpha=encoding.alpha[::-1], centers=encoding.centers[::-1], pairs=swapped
    )


def low_bias(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take M = 10 for one-hot."""
    right = conversion.bias_construction
    monkeypatch.setattr(
        conversion, "bias_construction", lambda maps, sizes, logit: right(maps, sizes, 10.0)
    )


def of_first_head(origins, value, output):
    """Narrow heads that all look where the first one looks."""
    return (0,) * len(origins), value, output


MUTANTS = (
    wrong_layer(
        "head-twice",
        "Two heads look at the same offset, and none at another.",
        subjects.PATCH_LAYER,
        heads("bias_construction", lambda e, m: (e.take_heads([0, 0, *range(2, 9)]), m)),
        DIFFER,
    ),
    wrong_layer(
        "one-head-less",
        "K² - 1 heads: the centre is taken to come for free, as with a residual connection.",
        subjects.PATCH_LAYER,
        heads(
            "bias_construction",
            lambda e, m: (e.take_heads(WITHOUT_CENTRE), m[jnp.array(WITHOUT_CENTRE)]),
        ),
        DIFFER,
    ),
    wrong_layer(
        "maps-exchanged",
        "The value maps of two heads are exchanged.",
        subjects.PATCH_LAYER,
        heads("bias_construction", lambda e, m: (e, m[jnp.array([1, 0, *range(2, 9)])])),
        DIFFER,
    ),
    wrong_layer(
        "narrow-heads-look-alike",
        "The chunks of a wide head all attend like the first head.",
        subjects.NARROW_LAYER,
        change_result(conversion, "split_heads", lambda split: of_first_head(*split)),
        DIFFER,
    ),
    wrong_layer(
        "bias-too-low",
        "M = 10 passes for infinity: the N - 1 other keys together still weigh e^-10·N.",
        subjects.PATCH_LAYER,
        low_bias,
        DIFFER,
    ),
    wrong_layer(
        "alpha-negative",
        "α is negative, so the head looks at the key that is furthest away.",
        subjects.QUADRATIC_LAYER,
        heads("quadratic_construction", lambda e, m: (replace(e, alpha=negated(e.alpha)), m)),
        DIFFER,
    ),
    wrong_layer(
        "centres-swapped",
        "The centre of a Gaussian is (x, y), where the tokens count (row, column).",
        subjects.QUADRATIC_LAYER,
        heads("quadratic_construction", lambda e, m: (column_first(e), m)),
        DIFFER,
    ),
    wrong_layer(
        "printed-score-in-bfloat16",
        "C20 eq. 9 is computed as printed, in bfloat16, where 17² is 288 and ties with 18².",
        subjects.FAR_QUADRATIC_LAYER,
        method(QuadraticGridEncoding, "shift_scores", printed_scores),
        DIFFER.replace("float32", "bfloat16"),
    ),
    wrong_layer(
        "spare-code-taken",
        "The shifts that matter to no head share the code of an offset.",
        subjects.ENUMERATED_LAYER,
        heads("enumerated_construction", lambda e, m: (replace(e, spare=0), m)),
        DIFFER,
    ),
)
