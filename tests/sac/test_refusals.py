"""What does not fit is refused with a message, not broadcast, narrowed or zeroed."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from sac.random_parameters import integers, sac

from convattn.sac import (
    EvenBias,
    MultiscaleParameters,
    as_sequence,
    as_single_scale,
    attention_scores,
    cosine_similarity,
    cross_attentive_features,
    even_bias_scores,
    filter_bank,
    initial_multiscale,
    initial_self_attentive,
    multiscale_self_attentive_convolution,
    sac_from_convolution,
    sac_from_even_kernel,
    self_attention_2d,
    self_attentive_convolution,
    side_by_side,
    with_segment,
    with_zero_ring,
)
from convattn.sac.modules import CrossAttentiveFeatures, SelfAttentiveLayer

IMAGES = integers(9, 2, 4, 6, 3)
PLAIN = sac(0, (1, 2), content=False)
ORDINARY = sac(0, (1, 2), content=False, ordinary=True)
SEQUENCE = sac(0, (2,), content=False, causal=True)
POINTWISE = sac(0, (1, 1))
KERNEL = jnp.ones((3, 3, 1, 1))
FULL = np.ones((4, 6), bool)
COARSE = FULL.copy()
COARSE[::2, ::2] = False


def masked(mask, parameters=PLAIN, images=IMAGES):
    return lambda: self_attentive_convolution(parameters, images, key_mask=mask)


def changed(base=PLAIN, images=IMAGES, function=self_attentive_convolution, **change):
    return lambda: function(replace(base, **change), images)


def initial(size, **change):
    options = {"heads": 1, "key_features": 1, "distances": (3, 3), **change}
    return lambda: initial_self_attentive(jax.random.key(0), size, 1, 1, **options)


def scales(function=multiscale_self_attentive_convolution, merge=(12, 4), count=3, **change):
    """Three scales, of which the first is changed."""
    table = EvenBias(jnp.ones((1, 1, 1)))
    several = [replace(sac(seed, (1, 1)), position=table) for seed in range(3)][:count]
    several[:1] = [replace(scale, **change) for scale in several[:1]]
    parameters = MultiscaleParameters(tuple(several), integers(0, *merge))
    return lambda: (
        function(parameters) if function is as_single_scale else function(parameters, IMAGES)
    )


def converted(**options):
    return lambda: sac_from_convolution(KERNEL, **options)


def paired(**options):
    return lambda: CrossAttentiveFeatures(SelfAttentiveLayer(POINTWISE), **options)


def crossed(parameters=PLAIN, **options):
    return lambda: cross_attentive_features(parameters, IMAGES, IMAGES, **options)


def even(*shape, **options):
    kernel = jnp.arange(float(np.prod(shape))).reshape(*shape, 1, 1)
    return lambda: sac_from_even_kernel(kernel, **options)


REFUSED = {
    "transposed mask": (masked(FULL.T), r"key_mask has the shape \(6, 4\)"),
    "float mask": (masked(jnp.ones((4, 6))), "expected bool"),
    "nothing left": (masked(~FULL), "masks every key"),
    "nothing left on the key grid": (
        masked(COARSE, replace(PLAIN, stride=(2, 2), key_stride=(2, 2))),
        "masks every key",
    ),
    "no past left": (
        masked(np.array([False, True, True]), SEQUENCE, IMAGES[:, 0, :3]),
        "first key",
    ),
    "leak 0": (changed(position=EvenBias(jnp.ones((1, 1, 1)), 0)), "uniform_weight=0"),
    "leak 3/2": (
        lambda: even_bias_scores(EvenBias(jnp.ones((1, 1)), 1.5), (2,), (2,)),
        r"uniform_weight=1\.5",
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
    "key without query": (changed(key=PLAIN.value), "query and key filters come together"),
    "bias of one channel": (changed(bias=jnp.ones(1)), r"bias\.shape=\(1,\)"),
    "value of one channel": (changed(value=PLAIN.value[..., :1, :]), r"value\.shape"),
    "long merge": (changed(ORDINARY, merge=integers(0, 9, 4)), r"merge\.shape=\(9, 4\)"),
    "merge alone": (changed(merge=integers(0, 8, 4)), "ordinary filters and the merge"),
    "table of three heads": (changed(position=EvenBias(jnp.ones((3, 1, 1)))), "holds 3 heads"),
    "table of one axis": (changed(position=EvenBias(jnp.ones((2, 1)))), "for 1 spatial axes"),
    "stride 0": (changed(stride=(0, 1)), r"each of stride=\(0, 1\)"),
    "one stride": (changed(stride=(1,)), "take 2 spatial axes everywhere"),
    "keys between queries": (changed(stride=(2, 2), key_stride=(1, 3)), "expected a divisor"),
    "images have no past": (changed(causal=True), "only a sequence has a past"),
    "no batch": (changed(images=IMAGES[0]), "add the batch axis"),
    "2-D with wide filters": (changed(function=self_attention_2d), "expected 1 × 1 filters"),
    "2-D with a stride": (
        changed(POINTWISE, function=self_attention_2d, stride=(2, 1)),
        r"stride=\(2, 1\), but expected 1",
    ),
    "2-D of other channels": (
        changed(POINTWISE, IMAGES[..., :2], self_attention_2d),
        r"value\.shape",
    ),
    "kernel of size 0": (initial((2, 0)), "kernel_size=0"),
    "no heads": (initial((2, 2), heads=0), "heads=0"),
    "three distances": (initial(1, distances=(3, 3, 3)), "one or two axes"),
    "no scales drawn": (
        lambda: initial_multiscale(jax.random.key(0), (), 1, 1),
        "kernel_sizes is empty",
    ),
    "scales of two strides": (scales(stride=(2, 2)), "all of one stride"),
    "no scales": (scales(count=0), "the 0 scales have"),
    "merge of other channels": (scales(merge=(11, 4)), "the 12 channels"),
    "scales of two dilations": (scales(as_single_scale, dilation=(2, 1)), "differ in stride"),
    "one scale without bias": (scales(as_single_scale, position=None), "have a position"),
    "one scale without content": (scales(as_single_scale, query=None), "have a query"),
    "a scale with a leak": (
        scales(as_single_scale, position=EvenBias(jnp.ones((1, 1, 1)), 0.5)),
        "scales with leaks",
    ),
    "scales of other features": (
        scales(as_single_scale, value=integers(0, 2, 1, 1, 3, 6)),
        "features a head",
    ),
    "filters of height two": (lambda: as_sequence(sac(0, (2, 3))), "1 × m"),
    "sequences made twice": (lambda: as_sequence(SEQUENCE), "1 × m"),
    "how": (crossed(how="nonsense"), "nonsense"),
    "one segment": (crossed(segments=(jnp.ones(3),)), "1 segments"),
    "two sequences": (crossed(SEQUENCE), "two axes"),
    "a gap between strides": (
        crossed(replace(PLAIN, stride=(1, 5), key_stride=(1, 1)), gap=1),
        "which the stride 5 passes over",
    ),
    "images of two heights": (lambda: side_by_side(IMAGES, IMAGES[:, :1]), "both should be one"),
    "gap -1": (lambda: side_by_side(IMAGES, IMAGES, -1), "gap=-1"),
    "segment of four channels": (lambda: with_segment(IMAGES, jnp.ones(4)), r"should be \[3\]"),
    "segment of one column": (
        lambda: with_segment(IMAGES, jnp.ones((4, 1, 3)), "concatenate"),
        r"should be \[d\]",
    ),
    "cosine of other channels": (
        lambda: cosine_similarity(IMAGES, IMAGES[..., :1]),
        "one number of channels",
    ),
    "module: how": (paired(how="multiply"), "how='multiply'"),
    "module: gap": (paired(gap=-1), "gap=-1"),
    "module: no rngs": (paired(segment_shape=(3,)), "rngs to draw"),
    "module: two axes": (paired(segment_shape=(2, 3), rngs=nnx.Rngs(0)), "or \\(height, width, d"),
    "kernel: leak 0": (
        converted(uniform_weight=0.0),
        "uniform_weight=0.0, but expected a number",
    ),
    "kernel: logit": (converted(sharpness=3.0), "works out its own M"),
    "kernel: logit < 0": (
        converted(sharpness=-1.0, form="limit"),
        "sharpness=-1.0, but expected a finite",
    ),
    "kernel: causal": (converted(causal=True), "causal=True is for sequences"),
    "kernel: stride 0": (converted(stride=0), "stride=0"),
    "odd kernel on axis 0": (even(3), "differs from its reflection in axis 0"),
    "odd kernel on axis 1": (even(1, 3), "differs from its reflection in axis 1"),
    "even kernel: size": (even(2, 3), r"sizes \(2, 3\) should be odd"),
    "even kernel: leak": (even(1, uniform_weight=2.0), r"uniform_weight=2\.0"),
    "strided ring": (
        lambda: with_zero_ring(replace(PLAIN, stride=(2, 1)), IMAGES, (1, 1)),
        "a SAC of stride 1",
    ),
    "an image has no past": (
        lambda: filter_bank(IMAGES, PLAIN.value, stride=(1, 1), dilation=(1, 1), causal=True),
        "only a sequence has a past",
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
        lambda images: self_attention_2d(POINTWISE, images),
        lambda images: with_segment(images, np.ones(3, np.float32)),
        lambda images: cross_attentive_features(PLAIN, images, images),
        lambda images: cosine_similarity(images, images),
    ],
)
def test_64_bit_images_are_not_narrowed(call) -> None:
    with jax.enable_x64(False), pytest.raises(ValueError, match="64-bit types are off"):
        call(np.ones((1, 2, 2, 3)))


@pytest.mark.slow
def test_lists_and_empty_batches_are_accepted(implicit_promotion: None) -> None:
    assert self_attentive_convolution(POINTWISE, [[[[1, 2, 3]]]]).shape == (1, 1, 1, 4)
    for function in (self_attentive_convolution, self_attention_2d):
        assert function(POINTWISE, jnp.ones((0, 1, 1, 3))).shape == (0, 1, 1, 4)


@pytest.mark.slow
def test_sizes_may_be_one_integer_or_numpys() -> None:
    options = {"heads": np.int64(2), "key_features": 3, "distances": (4, 5)}
    parameters = initial_multiscale(
        jax.random.key(0), (1, (1, 2)), 1, 1, stride=2, key_stride=1, **options
    ).scales
    assert [scale.kernel_size for scale in parameters] == [(1, 1), (1, 2)]
    assert {scale.key_stride for scale in parameters} == {(1, 1)}
