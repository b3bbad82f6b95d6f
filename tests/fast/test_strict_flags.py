"""Every back end, on every encoding, runs under JAX's strict flags; so do its gradients.

Promotion is decided while a program is traced, so that tracing alone tests those two flags. Values
under the flags are those of the back ends' own tests: the flags refuse, they change no number.
"""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from fast.layers import LAYER_BUCKETS, LayerBucket, make_layer_case

import convattn as ca
from convattn.fast.options import AttentionOptions
from convattn.fast.selection import BACK_ENDS
from convattn.fast.windowed.window import choose_windows

pytestmark = pytest.mark.usefixtures("quick_compilation")
PROMOTION = {"jax_numpy_dtype_promotion": "strict", "jax_numpy_rank_promotion": "raise"}
KERNEL = [[[1.0], [2.0], [3.0]], [[4.0], [5.0], [6.0]], [[7.0], [8.0], [9.0]]]


@pytest.fixture
def strict_promotion() -> Iterator[None]:
    before = {name: getattr(jax.config, name) for name in PROMOTION}
    jax.clear_caches()  # what was traced before the flags is not traced again
    for name, value in PROMOTION.items():
        jax.config.update(name, value)
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    jax.clear_caches()


@pytest.mark.parametrize("bucket", LAYER_BUCKETS, ids=str)
def test_back_ends_and_gradients_trace_under_strict_promotion(
    bucket: LayerBucket, request: pytest.FixtureRequest
) -> None:
    case = make_layer_case(bucket, 0)
    request.getfixturevalue("strict_promotion")
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
            result = ca.apply_attention(layer, images, ring=bucket.ring, backend=name, windows=own)
            return result.sum()

        jax.make_jaxpr(jax.grad(total, argnums=(0, 1)))(case.layer, case.images)


@pytest.mark.parametrize("padding", ["SAME", "REFLECT"])
def test_conv_and_the_layer_run_under_the_transfer_guard(padding: str) -> None:
    kernel = jnp.array(KERNEL)[..., None]
    bias, images = jnp.ones(1), jnp.arange(20.0).reshape(1, 4, 5, 1)
    expected = ca.conv(images, kernel, bias, padding=padding)
    jax.clear_caches()
    with jax.transfer_guard("disallow"):
        result = ca.conv(images, kernel, bias, padding=padding)
        layer = ca.conv_to_attention(kernel, bias, padding=padding, exact=False)
        attended = ca.apply_attention(layer, images)
        gradient = jax.grad(lambda images: ca.conv(images, kernel, bias, padding=padding).sum())
        jax.jit(gradient)(images)  # eagerly JAX itself transfers the 1 that it starts from
    assert result.tolist() == expected.tolist() == attended.tolist()


def test_windows_are_chosen_under_the_transfer_guard() -> None:
    case = make_layer_case(next(b for b in LAYER_BUCKETS if b.draw.__name__ == "bias"), 0)
    expected = choose_windows(case.layer.encoding, case.grid)
    with jax.transfer_guard("disallow"):
        assert choose_windows(case.layer.encoding, case.grid) == expected
