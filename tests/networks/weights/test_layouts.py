"""The layouts of Flax and PyTorch: run by those libraries, the weights are the convolution."""

import dataclasses
from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within
from flax import nnx

import convattn as ca
from convattn.encodings.layer import ContentScores
from convattn.networks.weights.files import parse_weights
from convattn.networks.weights.fixed_size import (
    FixedSizeAttention,
    at_image_size,
    smallest_image,
)
from convattn.networks.weights.flax_layout import (
    BiasedAttention,
    apply_flax,
    flax_module,
    pack_flax,
)
from convattn.networks.weights.formats import WeightsRefused, write_safetensors
from convattn.networks.weights.torch_layout import (
    apply_formula,
    apply_torch,
    multihead_attention,
    pack_torch,
)
from convattn.networks.weights.verification import reference

# Kernel, patches, image, and how to convert. Output wider than the heads together, narrower heads,
# stride that patches do not divide, one axis and groups are among them.
CASES = {
    "exact bias": ((3, 2, 2, 3), (2, 4), (4, 12), {"stride": (1, 2), "padding": "SAME_TORCH"}),
    "one-hot, output wider than all heads": ((1, 1, 1, 5), (1, 1), (3, 4), {"form": "limit"}),
    "narrow heads": ((3, 3, 2, 1), (2, 2), (4, 6), {"form": "limit", "head_dim": 3}),
    "scalar with gains": ((3, 2, 2), (1,), (5,), {"encoding": "scalar"}),
    "stride, groups": (
        (3, 2, 4),
        (2,),
        (12,),
        {"stride": 3, "encoding": "enumerated", "groups": 2, "padding": "SAME_TORCH"},
    ),
}
ROUTES = {"flax": (pack_flax, apply_flax), "torch": (pack_torch, apply_formula)}


@cache
def fixed_case(name: str):
    shape, patch, sides, options = CASES[name]
    generator = np.random.default_rng(len(name))
    kernel, bias = (
        generator.integers(-4, 5, size).astype(np.float32) for size in (shape, shape[-1])
    )
    layer = ca.conv_to_attention(kernel, bias, patch_size=patch, **options)
    fixed = at_image_size(layer, sides)
    expected = reference(fixed.layer, kernel, bias, sides, groups=options.get("groups", 1), seed=3)
    return fixed, expected


def stored(pack, fixed: FixedSizeAttention):
    return parse_weights(write_safetensors(*pack(fixed)), "net")


@pytest.mark.slow
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("name", CASES)
def test_the_stored_weights_are_the_convolution(name, route):
    pack, run = ROUTES[route]
    fixed, expected = fixed_case(name)
    file = stored(pack, fixed)
    assert expected.equality is not is_exact(CASES[name][3])
    assert_within(run(file, expected.images), expected.expected, expected.bound)
    assert expected.compare("route", lambda images: run(file, images)).passed


def is_exact(options: dict) -> bool:
    exact = options.get("encoding", "bias") in ("bias", "scalar")
    return options["form"] == "exact" if "form" in options else exact


@pytest.mark.parametrize("name", CASES)
def test_torch_itself_computes_the_convolution(name):
    pytest.importorskip("torch")
    fixed, expected = fixed_case(name)
    file = stored(pack_torch, fixed)
    assert_within(apply_torch(file, expected.images), expected.expected, expected.bound)


@pytest.mark.slow
@pytest.mark.parametrize("route", ROUTES)
def test_every_array_counts(route):
    """Whatever array is perturbed, by less than its largest entry, the comparison turns red."""
    pack, run = ROUTES[route]
    fixed, expected = fixed_case("narrow heads")
    arrays, metadata = pack(fixed)
    for name, array in arrays.items():
        changed = array.copy()
        index = np.unravel_index(np.abs(array).argmax(), array.shape)
        changed[index] += 0.5
        if not array.any() and ("query" in name or "key" in name or name == "in_proj_bias"):
            continue  # a query or key map alone multiplies the other's zeros
        if name in ("attention_fn.bias", "attn_mask"):
            changed[...] = 0
        file = parse_weights(write_safetensors({**arrays, name: changed}, metadata), "net")
        assert not expected.compare(name, lambda images, file=file: run(file, images)).passed, name


@pytest.mark.slow
def test_the_flax_module_is_one_of_flax_and_its_bias_is_trained():
    fixed, expected = fixed_case("exact bias")
    module, tokens = flax_module(stored(pack_flax, fixed))
    assert type(module) is nnx.MultiHeadAttention
    images = jnp.asarray(expected.images)

    def loss(model):
        return (model(tokens.queries(images), tokens.keys(images)) ** 2).sum()

    gradient = nnx.grad(loss)(module)
    assert jnp.abs(gradient["attention_fn"]["bias"][...]).max() > 0
    assert_equal(module.attention_fn.bias[...], fixed.scores)


@pytest.mark.parametrize(
    ("kernel", "patch", "stride", "dilation", "sides"),
    [
        ((3, 5), (1, 1), (1, 1), (1, 1), (3, 5)),
        ((3, 3), (1, 1), (1, 1), (1, 1), (3, 4)),  # different ones
        ((3, 3), (2, 3), (1, 1), (3, 2), (8, 9)),  # 2·3 + 2 and 2·2 + 3, up to multiples
        ((3, 2), (1, 2), (3, 5), (1, 1), (5, 6)),  # 2 + 3 and 1 + 5
        ((3,), (4,), (1,), (1,), (8,)),
        ((4,), (1,), (1,), (2,), (7,)),
    ],
)
def test_the_smallest_image_has_a_pixel_for_every_tap(kernel, patch, stride, dilation, sides):
    assert smallest_image(kernel, patch, stride, dilation) == sides


@pytest.mark.parametrize(("sizes", "first"), [((1, 2), 1), ((2, 2), 2), ((2, 1), None)])
@pytest.mark.quick(1)
def test_a_missing_map_is_the_narrower_identity(sizes, first):
    """In front where it is as wide as the token, also if that is as wide as the result."""
    fixed = at_image_size(ca.conv_to_attention(np.ones((1, *sizes)), form="limit"), (2,))
    identity, other = (fixed.value, fixed.output) if first else (fixed.output, fixed.value)
    assert_equal(identity[0], np.eye(min(sizes)))
    assert_equal(other[0], np.ones(sizes))


def test_the_formula_is_that_of_queries_keys_and_values():
    """Two heads of two features; queries and keys differ, and so do all blocks of the weights."""
    rng = np.random.default_rng(0)
    query, key, value = (rng.normal(size=(2, n, 4)) for n in (3, 5, 5))
    shapes = {"in_proj_weight": (12, 4), "in_proj_bias": (12,), "out_proj.weight": (4, 4)}
    arrays = {name: rng.normal(size=s) for name, s in (shapes | {"out_proj.bias": (4,)}).items()}
    mask = rng.normal(size=(2, 3, 5))
    outputs = multihead_attention(query, key, value, arrays, mask)
    weight, bias = arrays["in_proj_weight"], arrays["in_proj_bias"]
    heads = []
    for head in range(2):
        parts = [slice(4 * block + 2 * head, 4 * block + 2 * head + 2) for block in range(3)]
        q, k, v = (
            tokens[1] @ weight[part].T + bias[part]
            for tokens, part in zip((query, key, value), parts, strict=True)
        )
        raised = np.exp(q @ k.T / np.sqrt(2) + mask[head])
        heads.append(raised / raised.sum(axis=1, keepdims=True) @ v)
    joined = np.concatenate(heads, axis=1)
    expected = joined @ arrays["out_proj.weight"].T + arrays["out_proj.bias"]
    assert_within(outputs[1], expected, 1e-12)  # of numbers of some tens, in float64


@cache
def smallest_case() -> FixedSizeAttention:
    """Of 3 heads, 4 queries and 5 keys; heads of one feature and results of two, so E = 3."""
    layer = ca.conv_to_attention(np.ones((2, 1, 2), np.float32), np.ones(2, np.float32))
    return at_image_size(layer, (4,))


IMAGES = np.arange(4, dtype=np.float32).reshape(1, 4, 1)


@pytest.mark.slow
def test_every_array_of_torch_has_its_shape():
    arrays, metadata = pack_torch(smallest_case())
    shapes = {name: array.shape for name, array in arrays.items()}
    assert shapes == {
        "in_proj_weight": (9, 3),
        "in_proj_bias": (9,),
        "out_proj.weight": (3, 3),
        "out_proj.bias": (3,),
        "attn_mask": (3, 4, 5),
    }
    for name, shape in shapes.items():
        misshapen = np.zeros((*shape[:-1], shape[-1] + 1), np.float32)
        file = parse_weights(write_safetensors({**arrays, name: misshapen}, metadata), "net")
        with pytest.raises(
            WeightsRefused, match=rf"net: {name} has shape .* expected \({shape[0]}"
        ):
            apply_formula(file, IMAGES)
    del arrays["attn_mask"]
    with pytest.raises(WeightsRefused, match="no array 'attn_mask'"):
        apply_formula(parse_weights(write_safetensors(arrays, metadata), "net"), IMAGES)
    result = apply_formula(stored(pack_torch, smallest_case()), IMAGES)
    expected = [[2, 2], [4, 4], [6, 6], [4, 4]]  # with 1 the sums of two pixels, zero behind
    assert_within(result[0], expected, 1e-5)


@pytest.mark.slow
def test_what_has_no_fixed_size_is_refused(monkeypatch):
    layer = ca.conv_to_attention(np.ones((3, 1, 1), np.float32), patch_size=2)
    with pytest.raises(ValueError, match=r"image_size=\(5,\), but patches of size \(2,\)"):
        at_image_size(layer, (5,))
    content = ContentScores(jnp.ones((4, 2, 1)), jnp.ones((4, 2, 1)))
    with pytest.raises(ValueError, match="content scores"):
        at_image_size(dataclasses.replace(layer, content=content), (4,))
    without = dataclasses.replace(layer, output=None)
    for bare in (without, dataclasses.replace(without, bias=jnp.ones(2, jnp.float32))):
        with pytest.raises(ValueError, match="neither a value nor an output map"):
            at_image_size(bare, (4,))
    half = ca.conv_to_attention(jnp.ones((3, 1, 1), jnp.bfloat16))
    with pytest.raises(ValueError, match="stored in bfloat16; cast its arrays to float32"):
        at_image_size(half, (4,))
    with pytest.raises(ValueError, match="GiB in float32; take larger patches"):
        at_image_size(layer, (10**6,))
    monkeypatch.setattr("convattn.networks.weights.torch_layout.LARGEST", 4 * 8**2 * 4)
    assert pack_torch(at_image_size(layer, (4,)))[0]["in_proj_bias"].shape == (3 * 8,)
    monkeypatch.setattr("convattn.networks.weights.torch_layout.LARGEST", 4 * 8**2 * 4 - 1)
    with pytest.raises(ValueError, match=r"embed_dim=8, .*--head-dim"):
        pack_torch(at_image_size(layer, (4,)))


@pytest.mark.parametrize(("route", "other"), [("flax", "torch"), ("torch", "flax")])
def test_another_layout_and_another_size_are_refused(route, other):
    file, another = (stored(ROUTES[name][0], smallest_case()) for name in (route, other))
    run = ROUTES[route][1]
    with pytest.raises(ValueError, match="the weights are made for images of"):
        run(file, IMAGES[:, :2])
    wrong = ({}, {"convattn": "3"}, {"convattn": "{}"}, {"convattn": "{"}, another.metadata)
    for metadata in wrong:
        with pytest.raises(WeightsRefused, match=f"net is not in the layout '{route}'"):
            run(dataclasses.replace(file, metadata=metadata), IMAGES)


def test_other_shapes_of_flax_are_refused():
    arrays, metadata = pack_flax(smallest_case())
    arrays["out.bias"] = np.zeros(3, np.float32)
    with pytest.raises(WeightsRefused, match=r"out.bias has shape \(3,\), expected"):
        apply_flax(parse_weights(write_safetensors(arrays, metadata), "net"), IMAGES)
    with pytest.raises(ValueError, match=r"the bias has the shape .* but 1 heads, 2 queries"):
        BiasedAttention(jnp.zeros((1, 1, 3)))(*(jnp.zeros((1, 2, 1, 1)) for _ in range(3)))
