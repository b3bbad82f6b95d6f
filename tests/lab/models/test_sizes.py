"""Parameters and FLOPs of C20's tables, from the modules; FLOPs against XLA's own count."""

import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from convattn.nnx.layers.images import token_grid
from convattn_lab.models.settings import (
    EncoderSettings,
    ResNetSettings,
    SelfAttentiveResNetSettings,
)
from convattn_lab.models.sizes import abstract_model, flop_count, parameter_count
from convattn_ledger.evidence import model_size

PRUNED = (7, 5, 8, 7, 3, 9)
SETTINGS = {
    "quadratic": EncoderSettings(),
    "gaussian": EncoderSettings("gaussian"),
    "pruned": EncoderSettings("gaussian", heads=PRUNED),
    "learned": EncoderSettings("learned"),
    "content": EncoderSettings("content"),
    "ResNet18": ResNetSettings(),
}
COUNTS = {
    "quadratic": (12_086_844, "12.1M"),
    "gaussian": (12_087_006, "12.1M"),
    "pruned": (9_686_916, "9.7M"),
    "learned": (12_278_682, "12.3M"),
    "content": (29_484_282, "29.5M"),
    "ResNet18": (11_173_962, "11.2M"),
}
WORK = dict.fromkeys(("quadratic", "gaussian", "learned"), "6.2B")
WORK |= {"pruned": "4.9B", "content": "15B", "ResNet18": "1.1B"}


def layers_of(name):
    if name == "ResNet18":
        return model_size.resnet18()
    encoding = "gaussian" if name == "pruned" else name
    return model_size.self_attention_model(encoding, pruned=15 if name == "pruned" else 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_the_parameters_are_those_of_the_tables(name):
    """From abstract shapes: nothing of paper size is allocated."""
    model = abstract_model(SETTINGS[name])
    leaves = jax.tree.leaves(nnx.state(model))
    assert all(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in leaves)
    count, printed = COUNTS[name]
    assert parameter_count(model) == count == model_size.parameters(layers_of(name))
    assert parameter_count(nnx.state(model)) == count
    assert model_size.rounds_to(count, printed)
    settings = SETTINGS[name]
    other = {"blocks": (2, 2, 2, 1)} if name == "ResNet18" else {"heads": (*settings.heads[:-1], 8)}
    less = abstract_model(replace(settings, **other))  # planted: one head, or block
    assert parameter_count(less) != count


@pytest.mark.parametrize("name", SETTINGS)
def test_the_flops_are_those_of_the_tables(name):
    count, layers = flop_count(SETTINGS[name]), layers_of(name)
    assert count.maps == model_size.flops(layers)
    assert count.total == model_size.flops(layers, *model_size.APART)
    assert model_size.rounds_to(count.maps, WORK[name])


# ---------------------------------------------------------------------- against XLA's count
def counted_by_xla(settings, image_size, **options):
    """XLA's FLOPs of one forward pass of one image, lowered and not compiled."""
    graph, state = nnx.split(abstract_model(settings, image_size=image_size, **options))
    images = jax.ShapeDtypeStruct((1, *image_size, 3), jnp.float32)
    program = jax.jit(lambda state, images: nnx.merge(graph, state)(images))
    return int(program.lower(state, images).cost_analysis()["flops"])


def done_by_element(settings, image_size):
    """At most so many FLOPs are no products: what `flop_count` leaves out, listed.

    For each pair of tokens and head: softmax subtracts the greatest, divides by the sum, and finds
    both, four; two more for the positions, whose indices are worked out once for all heads. With
    content the positions, the content, the two axes of the tables and the scale are put together,
    five more. For each feature of a token: two norms, of which each subtracts the mean twice,
    squares, scales twice, shifts, and sums twice, two sums, and the biases, two residuals, and the
    mean, 24. For each feature inside the feed-forward part: the exact gelu, whose error function
    XLA writes as quotients of polynomials of degree eight or so for small and large arguments, 80.
    For each shift and head: its score, 16. A feature of query or key: its bias, one.

    Q·Rᵀ is computed with all 2n - 1 shifts of an axis, not with the n that a query meets.
    """
    rows, columns = token_grid(image_size, settings.downsampling)
    tokens, width = rows * columns, settings.width
    heads, depth = sum(settings.heads), settings.depth
    content = settings.encoding == "content"
    total = heads * tokens**2 * (11 if content else 6) + tokens * width * (24 * depth + 2)
    total += tokens * settings.inner * 80 * depth + heads * (2 * rows - 1) * (2 * columns - 1) * 16
    if settings.encoding == "learned":
        total += 2 * heads * 2 * (rows + columns) * width
    if content:
        total += 2 * heads * tokens * width
        total += heads * tokens * (rows + columns - 2) * width  # the other shifts of Q·Rᵀ
    return total + 100 * width


REDUCED = {"width": 120, "inner": 24, "downsampling": 2}
AUDITED = [
    (SETTINGS["quadratic"], (32, 32), 0.02),
    *(
        (EncoderSettings(name, heads=(3, 2), **REDUCED), (16, 12), 0.05)
        for name in ("gaussian", "learned", "content")
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("settings", "size", "fraction"), AUDITED)
def test_xla_counts_the_same_products(settings, size, fraction):
    """The dense back end, which has no loop (XLA counts the body of one once), and not folded."""
    by_xla = counted_by_xla(settings, size, backend="dense", fold=False)
    count = flop_count(settings, image_size=size)
    ours, margin = count.total, done_by_element(settings, size)
    assert margin < fraction * ours
    assert 0 <= by_xla - ours <= margin
    # planted: a head's value map forgotten, half of A·X, one FLOP for a product
    value_map = 2 * (size[0] * size[1] // 4) * settings.width**2
    for wrong in (ours - value_map, ours - count.mixing // 2, ours // 2):
        assert not 0 <= by_xla - wrong <= margin


def test_xla_counts_the_same_convolutions():
    """XLA leaves the zeros around the images out; each number of a convolution's result meets a
    norm, five, a ReLU and a sum, and the classifier adds biases: eight at most."""
    settings, size = ResNetSettings((8, 12), (1, 2)), (10, 7)
    by_xla = counted_by_xla(settings, size)
    analytic = flop_count(settings, image_size=size, zeros=False).total
    numbers = 8 * 10 * 7 * 3 + 12 * 5 * 4 * 5
    assert 0 <= by_xla - analytic <= 8 * numbers + 100 * 12
    with_zeros = flop_count(settings, image_size=size).total
    assert not 0 <= by_xla - with_zeros <= 8 * numbers  # planted: the zeros counted


def test_a_layer_without_heads_takes_one_product_of_its_bias():
    settings = EncoderSettings(heads=(0, 2), **REDUCED)
    by_xla = counted_by_xla(settings, (16, 12), backend="dense", fold=False)
    assert by_xla >= flop_count(settings, image_size=(16, 12)).total
    more = replace(settings, heads=(2, 2))
    assert flop_count(more, image_size=(16, 12)).total > by_xla


# ---------------------------------------------------------------------- self-attentive networks
TINY = SelfAttentiveResNetSettings(channels=(2, 4), blocks=(2, 1), key_features=3)
KINDS = {
    "convolution": replace(TINY, operator="convolution"),
    "sac": replace(TINY, ordinary=True),
    "msac": replace(TINY, operator="msac", fine_keys=True),
}
IMAGE = (16, 12)


def products(equation) -> int:
    """The multiplications of one operation of a program."""
    if equation.primitive.name == "dot_general":
        (contracted, _), _ = equation.params["dimension_numbers"]
        shape = equation.invars[0].aval.shape
        return math.prod(equation.outvars[0].aval.shape) * math.prod(shape[a] for a in contracted)
    if equation.primitive.name == "conv_general_dilated":
        kernel = equation.invars[1].aval.shape
        return math.prod(equation.outvars[0].aval.shape) * math.prod(kernel[:-1])
    bodies = [body for body in equation.params.values() if hasattr(body, "eqns")]
    bodies += [body.jaxpr for body in equation.params.values() if hasattr(body, "jaxpr")]
    return sum(products(inner_equation) for body in bodies for inner_equation in body.eqns)


def counted(settings: SelfAttentiveResNetSettings) -> int:
    """The multiplications of the forward pass of one image."""
    graph, state = nnx.split(abstract_model(settings, classes=5, image_size=IMAGE))
    program = jax.make_jaxpr(lambda state, images: nnx.merge(graph, state)(images))(
        state, jax.ShapeDtypeStruct((1, *IMAGE, 3), jnp.float32)
    )
    return sum(products(equation) for equation in program.jaxpr.eqns)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_flops_are_twice_the_products_of_the_program(kind):
    result = flop_count(KINDS[kind], classes=5, image_size=IMAGE)
    assert result.total == 2 * counted(KINDS[kind])
    assert (result.mixing > 0) == (result.matching > 0) == (kind != "convolution")
    assert result.total != 2 * counted(replace(KINDS[kind], channels=(2, 5)))
