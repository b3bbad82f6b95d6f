"""Every back end, on every encoding, and all other operators run under JAX's strict flags.

So do the gradients of the back ends, and all floats narrower than float32.

Promotion is decided while a program is traced, so that tracing alone tests those two flags. Values
under the flags are those of the back ends' own tests: the flags refuse, they change no number.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from fast.layers import LAYER_BUCKETS, LayerBucket, make_layer_case
from flax import nnx
from sac.random_parameters import sac

import convattn as ca
import convattn.sac as operators
from convattn.fast.options import AttentionOptions
from convattn.fast.selection import BACK_ENDS
from convattn.fast.windowed.window import choose_windows
from convattn.nnx import AttentionConv, to_attention, to_convolution

pytestmark = pytest.mark.usefixtures("strict_promotion")
PROMOTION = {"jax_numpy_dtype_promotion": "strict", "jax_numpy_rank_promotion": "raise"}
KERNEL = [[[1.0], [2.0], [3.0]], [[4.0], [5.0], [6.0]], [[7.0], [8.0], [9.0]]]


@pytest.fixture(scope="module")
def strict_promotion() -> Iterator[None]:
    before = {name: getattr(jax.config, name) for name in PROMOTION}
    jax.clear_caches()  # what was traced before the flags is not traced again
    for name, value in PROMOTION.items():
        jax.config.update(name, value)
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    jax.clear_caches()


@pytest.mark.quick(2)
@pytest.mark.parametrize("bucket", LAYER_BUCKETS, ids=str)
def test_back_ends_and_gradients_trace_under_strict_promotion(bucket: LayerBucket) -> None:
    case = make_layer_case(bucket, 0)
    options = AttentionOptions(tokens_dtype=case.images.dtype)
    windows = (tuple((s.start, s.stop - 1) for s in bucket.grid.shift_ranges),) * bucket.heads
    served = [
        name
        for name, end in BACK_ENDS.items()
        if end.refusal(case.layer, bucket.grid, options) is None
    ]
    assert "dense" in served
    for name in served:
        own = windows if name == "windowed" else None

        def total(layer: Any, images: jax.Array, name: str = name, own: Any = own) -> jax.Array:
            result = ca.apply_attention(layer, images, backend=name, windows=own)
            return result.sum()

        jax.make_jaxpr(jax.grad(total, argnums=(0, 1)))(case.layer, case.images)


def slow(*values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.slow)


HALVES = [jnp.bfloat16, slow(jnp.float16)]
DTYPES = [*HALVES, slow(jnp.float32)]  # in float32 fewer dtypes meet
IMAGES = jnp.arange(120.0).reshape(2, 4, 5, 3) % 5
THREE_CHANNELS = jnp.arange(54.0).reshape(3, 3, 3, 2) % 5 - 2
TABLE = operators.EvenBias(jnp.ones((2, 3, 2)), 0.25)
BOTH = replace(sac(0, (3, 3), ordinary=True), position=TABLE, bias=jnp.ones(4))
ONE = replace(sac(0, (1, 1)), position=TABLE)


def cast(tree: Any, dtype: Any) -> Any:
    """The same with arrays of another dtype."""
    return jax.tree.map(lambda part: jnp.asarray(part, dtype), tree)


SELF_ATTENTIVE: dict[str, tuple[Callable[..., Any], Any]] = {
    "content, tables and a convolution": (operators.self_attentive_convolution, BOTH),
    "strides": (
        operators.self_attentive_convolution,
        sac(0, (3, 3), stride=(2, 2), key_stride=(2, 1)),
    ),
    "scores": (lambda *args: operators.attention_scores(*args)[0], BOTH),
    "several scales": (
        operators.multiscale_self_attentive_convolution,
        operators.MultiscaleParameters((BOTH, sac(3, (1, 3))), jnp.ones((8, 4))),
    ),
    "two images": (
        lambda parameters, images: operators.cross_attentive_features(
            parameters, images, images, segments=(images[0, 0, 0], images[0, 0, 1])
        )[0],
        BOTH,
    ),
    "pixels": (operators.self_attention_2d, ONE),
    "a sequence": (
        lambda parameters, images: operators.self_attentive_convolution(
            operators.as_sequence(parameters, causal=True), images[:, 0]
        ),
        sac(0, (1, 3)),
    ),
    "similarity": (
        lambda parameters, images: operators.cosine_similarity(images, images + parameters),
        jnp.ones(()),
    ),
}


@pytest.mark.quick(1)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SELF_ATTENTIVE)
def test_self_attentive_operators_and_gradients(name: str, dtype: Any) -> None:
    run, parameters = SELF_ATTENTIVE[name]

    def total(parameters: Any, images: jax.Array) -> jax.Array:
        return run(parameters, images).astype(jnp.float32).sum()

    jax.make_jaxpr(jax.grad(total, argnums=(0, 1)))(cast(parameters, dtype), cast(IMAGES, dtype))


@pytest.mark.quick(1)
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("encoding", ["bias", "quadratic", "rotary"])
def test_halves_in_back_ends_and_their_gradients(encoding: str, dtype: Any) -> None:
    layer = ca.conv_to_attention(cast(THREE_CHANNELS, dtype), encoding=encoding)
    grid, served = layer.token_grid(IMAGES.shape[1:-1]), []
    every = (tuple((s.start, s.stop - 1) for s in grid.shift_ranges),) * layer.heads
    for name, end in BACK_ENDS.items():
        if end.refusal(layer, grid, AttentionOptions(tokens_dtype=dtype)) is None:
            served.append(name)

            def total(layer: Any, images: jax.Array, name: str = name) -> jax.Array:
                windows = every if name == "windowed" else None
                result = ca.apply_attention(layer, images, backend=name, windows=windows)
                return result.astype(jnp.float32).sum()

            jax.make_jaxpr(jax.grad(total, argnums=(0, 1)))(layer, cast(IMAGES, dtype))
    assert len(served) > 2


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("padding", ["SAME", "MEAN", "CIRCULAR", "SAME_TORCH"])
def test_halves_in_conv_and_filled_rings(padding: str, dtype: Any) -> None:
    kernel, bias = cast(THREE_CHANNELS, dtype), jnp.ones(2, dtype)
    layer = ca.conv_to_attention(kernel, bias, padding=padding, stride=2)
    jax.make_jaxpr(lambda x: ca.conv(x, kernel, bias, padding=padding, stride=2))(
        cast(IMAGES, dtype)
    )
    jax.make_jaxpr(lambda x: ca.apply_attention(layer, x))(cast(IMAGES, dtype))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_constructions_and_recovery(dtype: Any) -> None:
    kernel = cast(THREE_CHANNELS, dtype)
    jax.make_jaxpr(ca.conv_to_two_layers(kernel))(cast(IMAGES, dtype))
    ca.approximate_conv(kernel, 4)
    layer = ca.conv_to_attention(kernel, num_heads="min")
    ca.conv_to_attention(kernel, head_dim=1)
    ca.attention_to_conv(layer, 3, image_size=(6, 6))
    operators.sac_from_convolution(kernel)
    operators.sac_from_even_kernel(kernel + kernel[::-1, ::-1] + kernel[::-1] + kernel[:, ::-1])


OPTIONS = [{}, {"padding": "REFLECT", "strides": 2}, {"form": "limit"}]
FLOATS = [jnp.bfloat16, jnp.float16, jnp.float32]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("options", OPTIONS)
def test_modules_and_gradients(options: dict[str, Any], dtype: Any) -> None:
    kernel = cast(THREE_CHANNELS, dtype)
    graph, state = nnx.split(AttentionConv.from_kernel(kernel, jnp.ones(2, dtype), **options))

    def total(state: Any, images: jax.Array) -> jax.Array:
        return nnx.merge(graph, state)(images).astype(jnp.float32).sum()

    jax.make_jaxpr(jax.grad(total, argnums=(0, 1)))(state, cast(IMAGES, dtype))
    nnx.merge(graph, state).to_conv()


@pytest.mark.slow
def test_models_are_converted_and_back() -> None:
    """In float32: with other dtypes Flax's own normalisation promotes."""
    rngs = nnx.Rngs(0)
    grouped = nnx.Conv(3, 3, (3, 3), feature_group_count=3, rngs=rngs)
    net = nnx.Sequential(nnx.BatchNorm(3, rngs=rngs), nnx.relu, grouped)
    net.eval()
    images = IMAGES.astype(jnp.float32)
    attention, report = to_attention(net, images)
    assert len(report.layers) == 1
    to_convolution(attention, images)


@pytest.mark.parametrize("padding", ["SAME", "REFLECT"])
@pytest.mark.quick(1)
def test_conv_and_the_layer_run_under_the_transfer_guard(padding: str) -> None:
    kernel = jnp.array(KERNEL)[..., None]
    bias, images = jnp.ones(1), jnp.arange(20.0).reshape(1, 4, 5, 1)
    expected = ca.conv(images, kernel, bias, padding=padding)
    jax.clear_caches()
    with jax.transfer_guard("disallow"):
        result = ca.conv(images, kernel, bias, padding=padding)
        layer = ca.conv_to_attention(kernel, bias, padding=padding, form="limit")
        attended = ca.apply_attention(layer, images)
        gradient = jax.grad(lambda images: ca.conv(images, kernel, bias, padding=padding).sum())
        jax.jit(gradient)(images)  # eagerly JAX itself transfers the 1 that it starts from
    assert result.tolist() == expected.tolist() == attended.tolist()


def test_windows_are_chosen_under_the_transfer_guard() -> None:
    case = make_layer_case(next(b for b in LAYER_BUCKETS if b.draw.__name__ == "bias"), 0)
    expected = choose_windows(case.layer.encoding, case.grid)
    with jax.transfer_guard("disallow"):
        assert choose_windows(case.layer.encoding, case.grid) == expected
