"""The attention phase begins as the function that the convolution phase ended with."""

from dataclasses import replace
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within, gamma
from flax import nnx
from nnx.vision_transformer.tiny_transformer import CONVOLUTION, SETTINGS, images, network

from convattn.fast.application import apply_attention
from convattn.nnx.vision_transformer.convolution_mixing import convolve_tokens
from convattn.operators.convolution import conv
from convattn.operators.patches import patchify
from convattn_lab.models.presets import cmhsa
from convattn_lab.two_phase.mixing_bound import attention_bound
from convattn_lab.two_phase.settings import ConversionSettings, phase_two_settings
from convattn_lab.two_phase.transfer import convert_layer, transfer

EXACT, LIMIT = ConversionSettings("exact"), ConversionSettings("limit")
CASES = {
    "limit": (CONVOLUTION, LIMIT),
    "limit, M = 10": (CONVOLUTION, replace(LIMIT, logit=10.0)),
    "exact": (CONVOLUTION, EXACT),
    "exact, leak 0.1": (CONVOLUTION, replace(EXACT, leak=0.1)),
    "mean border": (replace(CONVOLUTION, border="mean"), EXACT),
}
KINDS = {"limit": LIMIT, "exact": EXACT}
CLOSE = 2.0**-30


@nnx.jit
def run(model, inputs):
    return model(inputs)


@nnx.jit
def gradient_of(mixing, tokens):
    return nnx.state(nnx.grad(lambda mixing: (mixing(tokens) ** 2).sum())(mixing))


@partial(jax.jit, static_argnames=("patch_size", "grid", "conversion"))
def run_converted(kernel, bias, inputs, *, patch_size, grid, conversion):
    return apply_attention(convert_layer(kernel, bias, patch_size, grid, conversion), inputs)


@cache
def pair(name):
    """Both phases in float64, parameters included, and what the first is given to mix."""
    settings, conversion = CASES[name]
    one = network(settings, "float64")
    two = transfer(one, phase_two_settings(settings, conversion), conversion, rngs=nnx.Rngs(7))
    return one, two


def layer_limit(one, two, conversion, tokens):
    """Of |attention - convolution|: `attention_bound` against the exact convolution, and the
    rounding of the convolution in use, γ_n(|X| * |W| + |b|) for n = K²C + 2 terms, and N + 1 more
    for the mean of N tokens."""
    count = one.kernel[..., 0].size + 2 + (one.border == "mean") * (tokens[0, ..., 0].size + 1)
    arrays = (tokens, one.kernel[...], one.bias[...])
    options = {"patch_size": one.patch_size, "border": one.border}
    size = convolve_tokens(*map(jnp.abs, arrays), **options)
    rounding = gamma(count, "float64") * np.asarray(size)
    return attention_bound(two, one, tokens, conversion) + rounding


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_each_layer_is_the_convolution_that_it_was(name):
    """On the same tokens, those of the first phase, within the derived bound, in float64."""
    (one, two), conversion = pair(name), CASES[name][1]
    tokens = one.embedded(images(dtype="float64"))
    for first, second in zip(one.layers, two.layers, strict=True):
        mixed = first.mixing_inputs(tokens)
        bound = layer_limit(first.mixing, second.mixing, conversion, mixed)
        assert_within(run(second.mixing, mixed), run(first.mixing, mixed), bound)
        largest = 1e-10 if conversion.logit == 40 else 1  # M = 40 and N = 20: TV is 8e-17
        assert bound.max() < largest
        tokens = first(tokens)


@pytest.mark.parametrize("name", ["limit", "exact"])
@pytest.mark.slow
def test_the_whole_network_gives_the_same_logits(name):
    """Layers agree within 1e-10, and nearly always within 1e-14; what follows amplifies that by a
    few powers of ten at most, far below this bound, and the planted error is far above it."""
    one, two = pair(name)
    inputs = images(dtype="float64")
    assert_within(run(two, inputs), run(one, inputs), CLOSE)
    with pytest.raises(AssertionError, match="too far"):
        # half of M(N), whose leak is no longer the one that the last head takes back
        assert_within(run(with_table(two, lambda x: x / 2), inputs), run(one, inputs), CLOSE)


def with_table(two, change):
    """A copy, in which the first layer's table is another."""
    graph, state = nnx.split(two)
    copy = nnx.merge(graph, jax.tree.map(jnp.array, state))
    table = copy.layers[0].mixing.position_bias
    table[...] = change(table[...])
    return copy


def with_another_tap(two):
    """Converted from a kernel of which one number differs by 2⁻¹⁰."""
    settings, conversion = CASES["exact"]
    other = network(settings, "float64")
    other.layers[0].mixing.kernel[0, 1, 2, 0] += 2.0**-10
    return transfer(other, two.settings, conversion, rngs=nnx.Rngs(7))


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("name", "spoil", "conversion"),
    [
        ("exact", with_another_tap, EXACT),  # more of them in test_deviation
        ("exact", lambda two: with_table(two, lambda x: x[:, ::-1]), EXACT),
        ("limit, M = 10", lambda two: two, replace(LIMIT, logit=20.0)),  # half of M
    ],
)
def test_what_went_wrong_exceeds_the_bound_of_a_layer(name, spoil, conversion):
    one, two = pair(name)
    first, second = one.layers[0], two.layers[0].mixing
    mixed = first.mixing_inputs(one.embedded(images(dtype="float64")))
    bound = layer_limit(first.mixing, second, conversion, mixed)
    with pytest.raises(AssertionError, match="too far"):
        assert_within(run(spoil(two).layers[0].mixing, mixed), run(first.mixing, mixed), bound)


# ---------------------------------------------------------------------- what is copied
def test_all_but_the_mixing_is_copied():
    one, two = pair("exact")
    before, after = (dict(nnx.to_flat_state(nnx.state(model, nnx.Param))) for model in (one, two))
    shared = [path for path in after if "mixing" not in path]
    assert {path for path in before if "mixing" not in path} == set(shared)
    for path in shared:
        assert_equal(after[path][...], before[path][...])
        assert after[path][...] is not before[path][...]
        pointer = after[path][...].unsafe_buffer_pointer()
        assert pointer != before[path][...].unsafe_buffer_pointer()  # training may use it up
    for layer in two.layers:
        mixing = layer.mixing
        assert_equal(mixing.value[...], np.tile(np.eye(12), (10, 1, 1)))
        for parameter in (mixing.query, mixing.query_bias, mixing.key_bias, mixing.value_bias):
            assert_equal(parameter[...], np.zeros(parameter.shape))
        assert abs(float(mixing.key[...].std()) / 0.02 - 1) < 5 / (2 * mixing.key.size) ** 0.5
    keys = [layer.mixing.key[...] for layer in two.layers]
    assert (np.asarray(keys[0]) != np.asarray(keys[1])).all()


def test_the_table_holds_m_at_the_shift_of_each_head():
    """Of the exact kind log(1 + N(1/ε - 1)) for N = 4·5 keys, within 15 roundings."""
    for name, height in (("limit", 40.0), ("exact", np.log1p(20.0))):
        mixing = pair(name)[1].layers[0].mixing
        table = np.asarray(mixing.position_bias[...])
        expected = np.zeros_like(table)
        for head, shift in enumerate((a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)):
            expected[head, mixing.grid.shifts.tolist().index(list(shift))] = height
        assert_within(table, expected, gamma(16, "float64") * height if name == "exact" else 0)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "size"), [("limit", 3), ("exact", 3), ("limit", 7), ("exact", 1)])
def test_a_converted_layer_is_the_convolution_of_the_image(kind, size):
    """Integers, and float32 in which the limit is one-hot: equal to the last bit at M = 120.

    With P = 2 a kernel of 7 = 2P + 3 reads patches two away, all beyond the image on one axis, and
    a kernel of 1 its own patch alone.
    """
    rng = np.random.default_rng(3)
    kernel = jnp.asarray(rng.integers(-4, 5, (size, size, 2, 2)), jnp.float32)
    bias = jnp.asarray([3.0, -2.0], jnp.float32)
    inputs = jnp.asarray(rng.integers(-9, 10, (1, 4, 6, 2)), jnp.float32)
    conversion = replace(KINDS[kind], logit=120.0)
    how = {"patch_size": 2, "grid": (2, 3), "conversion": conversion}
    result, expected = run_converted(kernel, bias, inputs, **how), conv(inputs, kernel, bias)
    if kind == "limit":
        assert_equal(result, expected)
    assert_within(result, expected, 0.01)  # below 1/2, which tells integers apart
    with pytest.raises(AssertionError, match="too far"):
        assert_within(result, conv(inputs, kernel[::-1, :, ::-1], bias), 0.01)


@pytest.mark.slow
def test_a_border_without_zeros_is_the_mean_of_all_tokens():
    """L21's own grid, which has no zero tokens: another function at the border, if phase one had
    zeros there, and the same inside."""
    kernel = jnp.asarray(np.random.default_rng(3).integers(-4, 5, (3, 3, 1, 1)), jnp.float32)
    inputs = jnp.asarray(np.random.default_rng(4).integers(-9, 10, (1, 12, 12, 1)), jnp.float32)
    bare = replace(LIMIT, logit=120.0, border="mean")
    bias = jnp.zeros(1, jnp.float32)
    how = {"patch_size": 2, "grid": (6, 6), "conversion": bare}
    assert jax.eval_shape(partial(convert_layer, **how), kernel, bias).ring == ((0, 0), (0, 0))
    result = run_converted(kernel, bias, inputs, **how)
    tokens = patchify(inputs, 2)
    mean = convolve_tokens(tokens, kernel, jnp.zeros(1), patch_size=2, border="mean")
    # 36 numbers below 10, their mean and nine products with at most 4: below γ_50·9·4·10
    assert_within(patchify(result, 2), mean, gamma(50, "float32") * 9 * 4 * 10)
    zeros = conv(inputs, kernel)
    assert_equal(result[:, 1:-1, 1:-1], zeros[:, 1:-1, 1:-1])
    assert (np.abs(np.asarray(result - zeros))[:, 0] > 1e-3).any()


@pytest.mark.slow
def test_a_learned_projection_begins_as_the_identity():
    one = network(CONVOLUTION)
    settings = replace(phase_two_settings(CONVOLUTION, LIMIT), projection="learned")
    two = transfer(one, settings, LIMIT, rngs=nnx.Rngs(0))
    inputs = images()
    assert_equal(two.embedded(inputs), one.embedded(inputs))
    assert two.projection.kernel.shape == (12, 12)


# ---------------------------------------------------------------------- gradients
@cache
def gradient_of_first_mixing(conversion):
    """In float32, of a sum of squares of what the first layer mixes, and its parameters' names."""
    one = network(replace(CONVOLUTION, depth=1))
    how = {"rngs": nnx.Rngs(7)}
    two = transfer(one, phase_two_settings(one.settings, conversion), conversion, **how)
    layer = two.layers[0]
    tokens = layer.mixing_inputs(two.embedded(images()))
    flat = nnx.to_flat_state(gradient_of(layer.mixing, tokens))
    return {path[-1]: np.asarray(parameter[...]) for path, parameter in flat}, layer.mixing, tokens


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("conversion", "zero", "learn"),
    [
        (EXACT, ["key"], ["position_bias", "value"]),  # keys not yet: queries are zero
        (
            replace(EXACT, content="none"),
            ["query", "key", "query_bias", "key_bias"],
            ["position_bias"],
        ),
        (replace(LIMIT, logit=120.0), ["position_bias", "query"], ["output"]),
    ],
    ids=["random keys", "both zero", "saturated"],
)
def test_what_learns(conversion, zero, learn):
    """Exactly zero: with both zero each gradient is a product with the other, and at M = 120
    weights are one and zero in float32."""
    gradient, *_ = gradient_of_first_mixing(conversion)
    assert all((gradient[name] == 0).all() for name in zero)
    assert all(np.abs(gradient[name]).max() > 1e-3 for name in learn)
    if "query" not in zero:
        assert np.abs(gradient["query"]).max() > 1e-6


@pytest.mark.slow
def test_a_nearly_saturated_softmax_passes_little_back():
    """At M = 40 the table's gradient is at most 2·TV·max|dA| for each query; at ε = 1/2 it is not
    small."""
    gradient, mixing, tokens = gradient_of_first_mixing(LIMIT)
    result = run(mixing, tokens)
    # dA_qk = 2 result_q · (X_k M_h); a key's gradient is a(dA - Σ a dA), of a row with TV off one
    into = jnp.einsum("bijo,hdo->bhijd", 2 * result, mixing.output[...])
    largest = float(jnp.abs(into).sum(axis=-1).max() * jnp.abs(tokens).max())
    count = tokens.shape[0] * tokens.shape[1] * tokens.shape[2]
    # of the difference dA - Σ a dA, at the target, whose a is 1
    rounding = 4 * gamma(200, "float32")
    limit = count * largest * (4 * LIMIT.total_variation(mixing.grid.number_of_keys) + rounding)
    assert np.abs(gradient["position_bias"]).max() <= limit
    exact, *_ = gradient_of_first_mixing(EXACT)
    assert np.abs(exact["position_bias"]).max() > 100 * np.abs(gradient["position_bias"]).max()


# ---------------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"heads": 9}, "another heads than"),
        ({"ring": 0, "depth": 3}, "another depth, ring than"),
        ({"mixing": "convolution"}, "another mixing than"),
        ({"head_width": 6}, "another head_width than"),
    ],
)
def test_phases_that_do_not_fit_are_refused(changes, message):
    settings = replace(phase_two_settings(CONVOLUTION, EXACT), **changes)
    with pytest.raises(ValueError, match=message):
        transfer(network(CONVOLUTION), settings, EXACT, rngs=nnx.Rngs(0))


def test_a_first_phase_of_attention_or_that_diverged_is_refused():
    with pytest.raises(ValueError, match="mixing='attention'"):
        transfer(network(SETTINGS["ring"]), SETTINGS["ring"], EXACT, rngs=nnx.Rngs(0))
    one = network(CONVOLUTION)
    one.layers[1].mixing.kernel[...] = one.layers[1].mixing.kernel[...].at[0].set(jnp.nan)
    with pytest.raises(ValueError, match="not finite"):
        transfer(one, phase_two_settings(CONVOLUTION, EXACT), EXACT, rngs=nnx.Rngs(0))


def test_how_far_the_limit_is_off():
    """(N - 1)/(e^M + N - 1), and nothing that overflows."""
    for logit, keys in ((1.0, 2), (10.0, 256), (40.0, 28)):
        expected = (keys - 1) / (np.exp(logit) + keys - 1)
        assert_within(
            replace(LIMIT, logit=logit).total_variation(keys),
            expected,
            gamma(40, "float64") * expected,
        )
    assert replace(LIMIT, logit=1e5).total_variation(256) == 0
    assert EXACT.total_variation(256) == 0


def test_sizes_of_the_second_phase():
    """Of L21: nine heads, or ten, on 14 × 14 patches with a ring of one."""
    settings = replace(CONVOLUTION, patch_size=1, width=3)
    assert phase_two_settings(settings, LIMIT).heads == 25  # pixels: K² heads
    assert phase_two_settings(settings, EXACT).ring == 2
    assert phase_two_settings(replace(settings, border="mean"), EXACT).ring == 0
    assert phase_two_settings(cmhsa(5, "convolution"), EXACT).heads == 10
    assert phase_two_settings(cmhsa(5, "convolution"), LIMIT).heads == cmhsa().heads
