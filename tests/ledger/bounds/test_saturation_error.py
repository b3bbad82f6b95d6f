"""The distance of a layer from its limit: bounded, reached by one head, refused where unknown."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_within, gamma
from flint import arb

import convattn as ca
from convattn.encodings import BiasEncoding, QuadraticEncoding, QuadraticGridEncoding
from convattn.encodings.layer import AttentionLayer, ContentScores
from convattn_ledger.bounds.saturation import (
    bias_total_variation,
    quadratic_total_variation_bound,
    upper,
)
from convattn_ledger.bounds.saturation_error import (
    head_saturation,
    saturation_error_bound,
    saturation_error_factor,
)
from convattn_ledger.evidence import exact_convolution
from convattn_ledger.evidence.token_padding import token_padded_convolution

KERNEL = np.random.default_rng(0).integers(-5, 6, (3, 3, 2, 1))
IMAGES = np.random.default_rng(1).integers(-9, 10, (2, 4, 6, 2))
attend = jax.jit(ca.apply_attention, static_argnames="border")


def bias_heads(values):
    return BiasEncoding(jnp.array(values), None, tuple((i,) for i in range(len(values[0]))))


def layer_of(encoding, sharpness, **options):
    return ca.conv_to_attention(
        KERNEL.astype(float), encoding=encoding, form="limit", sharpness=sharpness, **options
    )


def rows_by_definition(layer, image, ring):
    """The layer in NumPy: softmax and products, query by query; float64."""
    keys = np.pad(image, [*ring, (0, 0)])
    places = np.argwhere(np.ones(keys.shape[:2]))
    flat = keys.reshape(len(places), -1)
    result = np.zeros((*image.shape[:2], layer.output.shape[2]))
    for query in np.ndindex(image.shape[:2]):
        shift = places - np.array(query) - np.array([before for before, _ in ring])
        scores = np.asarray(layer.encoding.shift_scores(shift, len(places)))
        for row, block in zip(scores, np.asarray(layer.output), strict=True):
            weights = np.exp(row - row.max())
            result[query] += weights / weights.sum() @ flat @ block
    return result


@pytest.mark.slow
@pytest.mark.parametrize(("encoding", "outside"), [("quadratic", "edge"), ("bias", "mean")])
@pytest.mark.parametrize("sharpness", [0.5, 2.0, 5.0])
def test_the_distance_from_the_convolution(encoding, outside, sharpness):
    """The library's result is within 200 roundings of max|X|·Σ|W| of the definition: exp, sums of
    48 and 18 products and a softmax, in either."""
    layer = layer_of(encoding, sharpness)
    padded, count = token_padded_convolution(IMAGES, KERNEL, 1, outside)
    rounding = gamma(200, "float64") * np.abs(IMAGES).max() * np.abs(KERNEL).sum()
    for border, ring, limit in (("zeros", layer.ring, exact_convolution(IMAGES, KERNEL)),
                                ("none", ((0, 0), (0, 0)), padded / count)):  # fmt: skip
        bound = saturation_error_bound(layer, IMAGES.astype(float), border=border)
        assert bound.shape == limit.shape
        result = np.stack([rows_by_definition(layer, image, ring) for image in IMAGES])
        assert_within(result, limit, bound)
        assert np.abs(result - limit).max() > bound.max() / 100 > rounding
        assert_within(attend(layer, jnp.asarray(IMAGES, float), border=border), result, rounding)


def test_one_head_reaches_it():
    """X = 1 at the target and -1 elsewhere: the error is 2 TV exactly."""
    whole = ca.conv_to_attention(np.ones((1, 1, 1)), form="limit", sharpness=2.0)
    image = -np.ones((1, 7, 1))
    image[0, 3] = 1
    two = 2 * bias_total_variation(2.0, 7)
    bound = saturation_error_bound(whole, image)[0, 3, 0]
    for number in (bound, saturation_error_factor(whole, 7)[0]):
        assert two < arb(float(number)) < two * (1 + arb(2) ** -19)


ALPHAS, CENTERS = (jnp.array([0.5, 4.0]), jnp.array([2.0])), (jnp.array([0.0, 3.0]), jnp.ones(1))


@pytest.mark.parametrize(
    ("encoding", "axes", "strengths"),
    [
        (QuadraticEncoding(jnp.array([0.5, 4.0]), jnp.array([[0.0, 1], [2, -1]])), 2, (0.5, 4.0)),
        (QuadraticEncoding(jnp.array([0.5]), jnp.array([[1.0]])), 1, (0.5,)),
        (QuadraticEncoding(jnp.full(3, 0.5), jnp.zeros((3, 2))), 2, (0.5,) * 3),  # no three axes
        (QuadraticGridEncoding(ALPHAS, CENTERS, ((1, 0), (0, 0))), 2, (2.0, 0.5)),
        (bias_heads([[0.0, 3.0], [7.0, 0.0]]), None, (3.0, 7.0)),
        (bias_heads([[0.0, 3.0], [0.0, 7.0]]), None, (3.0, 7.0)),  # they may look at the same key
    ],
)
def test_the_distances_are_those_of_saturation(encoding, axes, strengths):
    expected = [
        bias_total_variation(one, 9) if axes is None else quadratic_total_variation_bound(one, axes)
        for one in strengths
    ]
    assert [*map(upper, head_saturation(encoding, 9))] == [*map(upper, expected)]


def test_tokens_that_are_equal_leave_the_rounding_of_their_maps():
    """Then no head's rows matter, and the bound is 2γ_n·Σ_h TV_h·(|X||V_h||U_h|).

    n = 4 + 3, the widths of the two products. These integers are not rounded, and fewer than a
    hundred roundings are left to the bound.
    """
    values = np.arange(1.0, 25.0).reshape(2, 4, 3) - 11
    outputs = np.array([[[1.0], [-2.0], [3.0]], [[-4.0], [5.0], [6.0]]])
    encoding, maps = bias_heads([[2.0, 0.0], [0.0, 5.0]]), map(jnp.asarray, (values, outputs))
    ones = dict.fromkeys(("patch_size", "stride", "dilation"), (1,))
    layer = AttentionLayer(encoding, *maps, ring=((0, 0),), **ones)
    token = np.array([1.0, -2.0, 4.0, 3.0])
    result = saturation_error_bound(layer, np.tile(token, (1, 6, 1)), border="none")
    sizes = np.einsum("i,hif,hfo->h", *map(np.abs, (token, values, outputs)))
    distances = [upper(bias_total_variation(logit, 6)) for logit in (2.0, 5.0)]
    rounding = 2 * gamma(7, "float64") * np.dot(distances, sizes) * (1 + 2.0**-20)
    assert result.shape == (1, 6, 1)
    assert result.ravel().tolist() == pytest.approx([rounding] * 6, rel=1e-12, abs=0)


def with_content():
    content = ContentScores(jnp.zeros((9, 2, 1)), jnp.zeros((9, 2, 1)))
    return replace(layer_of("bias", 3.0), content=content)


MAPLESS = AttentionLayer(bias_heads([[1.0]]), None, None)
HALF = jnp.array([0.5])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *(
            (lambda encoding=encoding: head_saturation(encoding, 9), message)
            for encoding, message in (
                (bias_heads([[1.0, 1.0]]), "one M > 0 and zeros"),
                (bias_heads([[1.0, -1.0]]), "one M > 0 and zeros"),
                (bias_heads([[0.0, 0.0]]), "one M > 0 and zeros"),
                (QuadraticEncoding(jnp.ones(1), HALF[None]), "not all integers"),
                (QuadraticGridEncoding((jnp.ones(1),), (HALF,), ((0,),)), "not all integers"),
                (QuadraticEncoding(jnp.full(1, 0.01), jnp.zeros((1, 1))), r"at least 0\.05"),
                *(
                    (ca.conv_to_attention(KERNEL, encoding=name).encoding, message)
                    for name, message in (("bias", "BiasEnc"), ("enumerated", "EnumeratedEnc"))
                ),
            )
        ),
        (lambda: saturation_error_bound(with_content(), IMAGES), "content"),
        (lambda: saturation_error_factor(MAPLESS, 9), "has no map"),
        (lambda: saturation_error_bound(MAPLESS, IMAGES), "has no map"),
        (lambda: saturation_error_bound(layer_of("bias", 3.0), IMAGES[..., :1]), "1 features"),
        (lambda: saturation_error_bound(layer_of("bias", 3.0), IMAGES, border="a"), "border='a'"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
