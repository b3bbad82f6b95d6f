"""Slips that are planted in the library itself, so that layers and certificates share them."""

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from convattn.bounds import majorant
from convattn.constructions import conversion, geometry
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.fast import application, dense
from convattn.ledger.evidence import layer_runs
from convattn.operators import shifts
from convattn.operators.shifts import from_query_minus_key

Patch = pytest.MonkeyPatch
DIFFER = r"float32: \d+ of \d+ entries differ"
EXCEED = r"float64: \d+ of \d+ entries exceed the bound"
TAP_INDEX = ConvolutionGeometry.__dict__["tap_index"].func


def trace_afresh(monkeypatch: Patch) -> None:
    """Let nothing compiled before the slip stand in for it, and nothing compiled with it stay.

    The slips are those of the dense back end, which is the reference of all others.
    """
    for module in (layer_runs, majorant):
        monkeypatch.setattr(
            module,
            "apply_attention",
            lambda layer, images: application.apply_attention(layer, images, backend="dense"),
        )


def change_result(
    module: ModuleType, name: str, change: Callable[[Any], Any]
) -> Callable[[Patch], None]:
    """A function of the library, with its result changed."""

    def plant(monkeypatch: Patch) -> None:
        function = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *args, **named: change(function(*args, **named)))

    return plant


def change_tap_index(
    change: Callable[[np.ndarray, int], np.ndarray],
) -> Callable[[Patch], None]:
    """On each axis another [offset, output, input] -> tap, made from the right one and K."""

    def tap_index(self: ConvolutionGeometry) -> tuple[np.ndarray, ...]:
        right = TAP_INDEX(self)
        return tuple(change(index, k) for index, k in zip(right, self.kernel_size, strict=True))

    return lambda monkeypatch: monkeypatch.setattr(
        ConvolutionGeometry, "tap_index", property(tap_index)
    )


flipped_kernel = change_tap_index(lambda i, k: np.where(i < 0, i, k - 1 - i))
transposed_map = change_tap_index(lambda i, k: np.swapaxes(i, 1, 2))
tap_off_by_one = change_tap_index(lambda i, k: np.where((i < 0) | (i == k - 1), -1, i + 1))
absent_is_centre = change_tap_index(lambda i, k: np.where(i < 0, (k - 1) // 2, i))


def taps_from(first: Callable[[int], int]) -> Callable[[Patch], None]:
    """The taps of a kernel of size K start at `first(K)`."""

    def plant(monkeypatch: Patch) -> None:
        for module in (shifts, geometry):
            monkeypatch.setattr(module, "axis_taps", lambda k: range(first(k), first(k) + k))

    return plant


taps_from_zero = taps_from(lambda k: 0)
even_kernel_to_the_left = taps_from(lambda k: -(k // 2))


def query_minus_key(monkeypatch: Patch) -> None:
    """The heads look at q - δ, the maps stay where they are."""

    def mirrored(pair: Any) -> Any:
        encoding, maps = pair
        looks = tuple(from_query_minus_key(offset) for offset in encoding.offsets)
        return replace(encoding, offsets=looks), maps

    change_result(conversion, "bias_construction", mirrored)(monkeypatch)


def stride_phase(monkeypatch: Patch) -> None:
    """Keep pixels s-1, 2s-1, …"""
    monkeypatch.setattr(geometry, "strided_output_pixels", lambda p, s: range(s - 1, p, s))


def dilation_in_tokens(monkeypatch: Patch) -> None:
    """Multiply the offsets of the undilated convolution by d."""
    right = geometry.axis_token_offsets
    monkeypatch.setattr(
        geometry,
        "axis_token_offsets",
        lambda k, p, d, *rest: tuple(d * offset for offset in right(k, p, 1, *rest)),
    )


def dilation_counts_gaps(monkeypatch: Patch) -> None:
    """Read d as the number of pixels left out between two taps."""
    of = ConvolutionGeometry.of
    monkeypatch.setattr(
        ConvolutionGeometry,
        "of",
        staticmethod(lambda k, p=1, s=1, d=1: replace(of(k, p, s, d), dilation=(d + 1,) * len(k))),
    )


no_ring = change_result(geometry, "zero_ring", lambda ring: tuple((0, 0) for _ in ring))
ring_before_only = change_result(geometry, "zero_ring", lambda ring: tuple((a, 0) for a, _ in ring))


def change_kernel(change: Callable[[Any], Any]) -> Callable[[Patch], None]:
    """The maps are those of another kernel."""

    def plant(monkeypatch: Patch) -> None:
        right = conversion.token_maps
        monkeypatch.setattr(
            conversion, "token_maps", lambda kernel, sizes: right(change(kernel), sizes)
        )

    return plant


swapped_axes = change_kernel(lambda kernel: jnp.swapaxes(kernel, 0, 1))


def heads(construction: str, change: Callable[[Any, Any], Any]):
    """Another encoding and other maps of a construction, made from the right ones."""
    return change_result(conversion, construction, lambda pair: change(*pair))


def method(owner: type, name: str, change: Callable[..., Any]):
    """A method of an encoding that may call the right one, given before `self`."""

    def plant(monkeypatch: Patch) -> None:
        trace_afresh(monkeypatch)
        right = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *args: change(right, *args))

    return plant


def in_application(name: str, change):
    """A function that `apply_attention` calls; `change` gets the right one and the arguments."""
    return in_module(application, name, change)


def in_dense(name: str, change):
    """A function that the dense back end calls; `change` gets the right one and the arguments."""
    return in_module(dense, name, change)


def in_module(module: ModuleType, name: str, change):
    """A function that a module calls."""

    def plant(monkeypatch: Patch) -> None:
        trace_afresh(monkeypatch)
        right = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *args, **named: change(right, *args, **named))

    return plant
