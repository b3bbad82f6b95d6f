"""One token of zero value repairs the bare grid in the limit: a head without its key rests there.

Beside the N image tokens let there be one more key whose *value* is zero (after any bias of the
value map, which a zero input alone would not give), with a constant score in each head:

    M/2 against the one-hot bias (M at the target, 0 elsewhere),
    -α/2 against the normalised quadratic score -α|δ - Δ|².

**Claim.** As s = M or α → ∞, a head attends to its target where that is a token of the image, and
to the zero token where it is not; so the layer tends to the zero-padded convolution without a ring.
In total variation a row is off by less than N e^(-s/2).

**Proof.** Where the target exists its score exceeds the zero token's by s/2 and every other key's
by at least s, since |δ - Δ|² ≥ 1 there. So the others have at most R = e^(-s/2) + (N-1)e^(-s) ≤
N e^(-s/2) times the target's weight, and R/(1 + R) < R of the row. Where it does not exist, each of
the N keys has a score at least s/2 below the zero token's; now R = N e^(-s/2). ∎

Eq. 9 of C20 as printed adds α|Δ|² to the scores of a head: then the zero token's score is
α|Δ|² - α/2. The sharpness must be twice that of a layer with a ring for the same distance.
"""

from typing import Any

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Num

from convattn.encodings.base import score_dtype
from convattn.encodings.bias import BiasEncoding
from convattn.encodings.layer import AttentionLayer
from convattn.encodings.quadratic import QuadraticEncoding
from convattn.encodings.quadratic_grid import QuadraticGridEncoding
from convattn.fast.application import layer_features
from convattn.operators.arrays import as_array, promoted
from convattn.operators.attention import HIGHEST, attention_weights, multi_head_self_attention
from convattn.operators.patches import patchify, unpatchify
from convattn.operators.shifts import TokenGrid


def zero_token_scores(encoding: object) -> Float[Array, "heads"]:
    """The score of the zero token in each head: M/2 or -α/2, α the smaller of its axes'.

    Raises:
        ValueError: For an encoding that is neither a bias in plain units nor quadratic.

    Source: S.padding of this project's ledger.

    >>> zero_token_scores(BiasEncoding(jnp.array([[0.0, 6.0]]), None, ((0,), (1,)))).tolist()
    [3.0]
    """
    if isinstance(encoding, BiasEncoding) and encoding.uniform_weight is None:
        return encoding.values.astype(score_dtype(encoding.values)).max(axis=1) / 2
    if isinstance(encoding, QuadraticEncoding):
        return -encoding.alpha.astype(score_dtype(encoding.alpha, encoding.centers)) / 2
    if isinstance(encoding, QuadraticGridEncoding):
        dtype = score_dtype(*encoding.alpha, *encoding.centers)
        return -encoding.head_alpha.min(axis=1).astype(dtype) / 2
    raise ValueError(
        f"encoding is {type(encoding).__name__}, but the zero token's score is known for a one-hot "
        "bias without a leak and for the quadratic encoding; lay the ring instead"
    )


def zero_token_weights(encoding: Any, grid: TokenGrid) -> Float[Array, "heads queries keys"]:
    """The weights of the keys of a grid beside one zero token, which has the rest of each row.

    Raises:
        ValueError: As `zero_token_scores`.

    >>> from convattn.encodings import BiasEncoding
    >>> heads = BiasEncoding(jnp.array([[40.0]]), None, ((1,),))
    >>> zero_token_weights(heads, TokenGrid((2,), ((0, 0),))).round(3).tolist()
    [[[0.0, 1.0], [0.0, 0.0]]]
    """
    rest = zero_token_scores(encoding)[:, None, None]
    scores = encoding.positional_scores(grid)
    rest = jnp.broadcast_to(rest, (*scores.shape[:2], 1))
    return attention_weights(jnp.concatenate([scores, rest], axis=-1))[..., :-1]


def attend_with_zero_token(
    layer: AttentionLayer, images: Any
) -> Num[Array, "batch *space out_channels"]:
    """Apply a layer on the bare grid and one token of zero value.

    Args:
        layer: From `conv_to_attention(…, exact=False)` with the encoding `"bias"` or `"quadratic"`;
            its own ring is not laid. Give it twice the `logit` or `alpha` that the ring would need.
        images: As for `apply_attention`.

    Returns:
        What `apply_attention` with the ring tends to, of the same dtype.

    Raises:
        ValueError: For another encoding, for content scores, and for images whose rank, channels or
            sides do not fit.

    Source: S.padding of this project's ledger.

    >>> import convattn as ca
    >>> layer = ca.conv_to_attention(jnp.ones((3, 1, 1)), encoding="quadratic", sharpness=256.0)
    >>> attend_with_zero_token(layer, jnp.ones((1, 4, 1))).ravel().tolist()
    [2.0, 3.0, 3.0, 2.0]
    """
    images = as_array(images, "images")
    if layer.content is not None:
        raise ValueError(
            "the layer has content scores, but the zero token's score is a constant that only "
            "positional scores are known to exceed; drop the content or lay the ring"
        )
    axes = len(layer.patch_size)
    if images.ndim != axes + 2:
        raise ValueError(
            f"images.shape={images.shape}, but a layer with {axes} spatial axes takes batch, "
            f"{axes} spatial axes, channels"
        )
    tokens = patchify(images, layer.patch_size)
    features = layer_features(layer)
    if features is not None and tokens.shape[-1] != features:
        raise ValueError(
            f"images.shape={images.shape} gives tokens of {tokens.shape[-1]} features, but the "
            f"layer takes {features}; it was made for another number of channels"
        )
    grid = TokenGrid(tuple(tokens.shape[1:-1]), ((0, 0),) * axes)
    result = multi_head_self_attention(
        tokens.reshape(len(images), grid.number_of_keys, tokens.shape[-1]),
        zero_token_weights(layer.encoding, grid),
        layer.value,
        layer.output,
        layer.bias,
        precision=HIGHEST,
    )
    dtype = jnp.result_type(images, *([] if layer.dtype is None else [layer.dtype]))
    if not jnp.issubdtype(dtype, jnp.inexact):
        dtype = promoted(dtype, jnp.float32)
    result = result.reshape(len(images), *grid.queries, -1).astype(dtype)
    outputs = unpatchify(result, layer.output_patch_size)
    return outputs[(slice(None), *(slice(None, None, s) for s in layer.subsampling))]
