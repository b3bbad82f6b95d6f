"""What does not fit is refused with a message, not broadcast, narrowed or zeroed."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from sac.random_parameters import integers, sac

from convattn.sac import (
    EvenBias,
    MultiscaleParameters,
    SelfAttention2DParameters,
    as_single_scale,
    attention_scores,
    cosine_similarity,
    cross_attentive_features,
    even_bias_scores,
    initial_multiscale,
    initial_self_attentive,
    sac_from_even_kernel,
    self_attention_2d,
    self_attentive_convolution,
    with_segment,
    with_zero_ring,
)

IMAGES = integers(9, 2, 4, 6, 3)
PLAIN = sac(0, (1, 2), content=False)
ORDINARY = sac(0, (1, 2), content=False, ordinary=True)
SEQUENCE = sac(0, (2,), content=False, causal=True)


def masked(mask, parameters=PLAIN, images=IMAGES):
    return lambda: self_attentive_convolution(parameters, images, key_mask=mask)


def changed(base=PLAIN, **change):
    return lambda: self_attentive_convolution(replace(base, **change), IMAGES)


def two_dimensional(**change):
    maps = SelfAttention2DParameters(*(jnp.ones((1, 3, 4)) for _ in range(3)))
    return lambda: self_attention_2d(replace(maps, **change), IMAGES)


FULL = np.ones((4, 6), bool)
COARSE = FULL.copy()
COARSE[::2, ::2] = False
REFUSED = {
    "transposed mask": (masked(FULL.T), r"key_mask has the shape \(6, 4\)"),
    "flat mask": (masked(FULL.ravel()), r"key_mask has the shape \(24,\)"),
    "float mask": (masked(jnp.ones((4, 6))), "should be bool"),
    "nothing left": (masked(~FULL), "masks every key"),
    "nothing left on the key grid": (
        masked(COARSE, replace(PLAIN, stride=(2, 2), key_stride=(2, 2))),
        "masks every key",
    ),
    "no past left": (
        masked(np.array([False, True, True]), SEQUENCE, IMAGES[:, 0, :3]),
        "first key",
    ),
    "leak 0": (changed(position=EvenBias(jnp.ones((1, 1, 1)), 0)), "leak=0"),
    "leak 3/2": (
        lambda: even_bias_scores(EvenBias(jnp.ones((1, 1)), 1.5), (2,), (2,)),
        r"leak=1\.5",
    ),
    "output of one head": (changed(output=PLAIN.output[:1]), r"output\.shape=\(1, 5, 4\)"),
    "query and key of one head": (
        changed(query=integers(1, 1, 1, 2, 3, 4), key=integers(2, 1, 1, 2, 3, 4)),
        r"query\.shape=\(1, 1, 2, 3, 4\)",
    ),
    "key of other features": (
        changed(query=integers(1, 2, 1, 2, 3, 4), key=integers(2, 2, 1, 2, 3, 1)),
        r"key\.shape=\(2, 1, 2, 3, 1\)",
    ),
    "bias of one channel": (changed(bias=jnp.ones(1)), r"bias\.shape=\(1,\)"),
    "value of one channel": (changed(value=PLAIN.value[..., :1, :]), r"value\.shape"),
    "long merge": (changed(ORDINARY, merge=integers(0, 9, 4)), r"merge\.shape=\(9, 4\)"),
    "stride 0": (changed(stride=(0, 1)), r"each of stride=\(0, 1\)"),
    "table of three heads": (two_dimensional(position=EvenBias(jnp.ones((3, 4, 6)))), "3 heads"),
    "query of two heads": (two_dimensional(query=jnp.ones((2, 3, 4))), r"query\.shape"),
    "how": (lambda: cross_attentive_features(PLAIN, IMAGES, IMAGES, how="nonsense"), "nonsense"),
    "one segment": (
        lambda: cross_attentive_features(PLAIN, IMAGES, IMAGES, segments=(jnp.ones(3),)),
        "1 segments",
    ),
    "sequences": (lambda: cross_attentive_features(SEQUENCE, IMAGES, IMAGES), "two axes"),
    "strided ring": (
        lambda: with_zero_ring(replace(PLAIN, stride=(2, 1)), IMAGES, (1, 1)),
        "a SAC of stride 1",
    ),
    "no scales": (
        lambda: as_single_scale(MultiscaleParameters((), jnp.ones((1, 1)))),
        "the 0 scales",
    ),
    "cosine of other channels": (
        lambda: cosine_similarity(IMAGES, IMAGES[..., :1]),
        "one number of channels",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case, unchecked) -> None:
    call, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda images: self_attentive_convolution(PLAIN, images),
        lambda images: attention_scores(PLAIN, images),
        lambda images: two_dimensional_of(images),
        lambda images: with_segment(images, np.ones(3, np.float32)),
        lambda images: cross_attentive_features(PLAIN, images, images),
        lambda images: cosine_similarity(images, images),
    ],
)
def test_64_bit_images_are_not_narrowed(call) -> None:
    with jax.enable_x64(False), pytest.raises(ValueError, match="64-bit types are off"):
        call(np.ones((1, 2, 2, 3)))


def two_dimensional_of(images):
    return self_attention_2d(SelfAttention2DParameters(*(jnp.ones((1, 3, 4)),) * 3), images)


def test_lists_and_empty_batches_are_taken() -> None:
    given = sac(0, (1, 1), content=False)
    assert self_attentive_convolution(given, [[[[1, 2, 3]]]]).shape == (1, 1, 1, 4)
    assert self_attentive_convolution(given, jnp.ones((0, 2, 3, 3))).shape == (0, 2, 3, 4)
    assert two_dimensional_of(jnp.ones((0, 2, 3, 3))).shape == (0, 2, 3, 4)


@pytest.mark.parametrize(
    ("dtype", "scale"), [("float32", 1e-12), ("float32", 1e12), ("float16", 200), ("float32", 1)]
)
def test_the_cosine_has_no_scale(dtype, scale) -> None:
    """(3, 4) and (4, 3)·2: 24/25; itself: 1, to the rounding of twenty operations."""
    one = scale * jnp.array([[[3, 4]]], dtype)
    error = 20 * float(jnp.finfo(dtype).eps)
    assert abs(float(cosine_similarity(one, one)[0]) - 1) < error
    assert abs(float(cosine_similarity(one, 2 * one[..., ::-1])[0]) - 24 / 25) < error


def test_sizes_may_be_one_integer_or_numpys() -> None:
    options = {"heads": np.int64(2), "key_features": 3, "distances": (4, 5)}
    made = initial_self_attentive(jax.random.key(0), 3, 1, 1, **options)
    assert made.kernel_size == (3, 3)
    scales = initial_multiscale(
        jax.random.key(0), (1, (1, 2)), 1, 1, stride=2, key_stride=1, **options
    ).scales
    assert [scale.kernel_size for scale in scales] == [(1, 1), (1, 2)]
    assert {scale.key_stride for scale in scales} == {(1, 1)}


def test_an_even_kernel_may_be_traced() -> None:
    kernel = jnp.array([2.0, 5.0, 2.0]).reshape(3, 1, 1)
    assert_equal(jax.jit(sac_from_even_kernel)(kernel).value.ravel(), [10, 6, -7])
