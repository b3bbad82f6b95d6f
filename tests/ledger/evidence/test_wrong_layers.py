"""Slips in the library, one at a time: the evidence on images must notice each, for its reason.

A slip is what a person may get wrong: a turned kernel, a ring that is missing, a bias counted
without the ring. It is planted in the library itself; then `equals_convolution` must speak against
the layer. The images are small, two of 8 × 32 pixels, and nothing is compiled as a whole, so that
what one test has changed cannot stand in for the next.
"""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from convattn.bounds import majorant, rounding
from convattn.constructions import conversion, convolution, geometry, table
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.encodings import bias as bias_scores
from convattn.encodings.base import RelativePosition
from convattn.encodings.bias import BiasEncoding
from convattn.encodings.layer import AttentionLayer
from convattn.encodings.quadratic import printed_features, printed_target
from convattn.encodings.quadratic_grid import QuadraticGridEncoding
from convattn.encodings.scalar import ScalarEncoding
from convattn.fast import application, dense
from convattn.operators import shifts
from convattn.operators.shifts import TokenGrid, from_query_minus_key
from convattn_ledger import EvidenceFailed
from convattn_ledger.evidence import equals_convolution, exact_convolution, layer_runs

Plant = Callable[[pytest.MonkeyPatch], None]

# The layers: kernel size, dtype and the other arguments of `equals_convolution`.
PIXEL = ((3, 3), "float32", {})
PATCH = ((3, 3), "float32", {"patch_size": 4})
EVEN = ((4, 4), "float32", {"patch_size": 2})
STRIDED = ((3, 3), "float32", {"patch_size": 4, "stride": 2})
SUBSAMPLED = ((3, 3), "float32", {"patch_size": 2, "stride": 3})
DILATED = ((3, 3), "float32", {"patch_size": 4, "dilation": 2})
QUADRATIC = ((3, 3), "float32", {"patch_size": 4, "encoding": "quadratic"})
FAR_QUADRATIC = ((3,), "bfloat16", {"encoding": "quadratic", "dilation": 18})
ENUMERATED = ((3, 3), "float32", {"patch_size": 4, "encoding": "enumerated"})
POLYGON = ((3, 3), "float32", {"patch_size": 4, "encoding": "polygon"})
ROTARY = ((3, 3), "float32", {"patch_size": 4, "encoding": "rotary"})
NARROW = ((3, 3), "float32", {"patch_size": 4, "head_dim": 16})
FINITE = ((3, 3), "float64", {"patch_size": 4, "form": "exact"})
FINITE_FLOAT32 = ((3, 3), "float32", {"patch_size": 4, "form": "exact"})
SCALAR = ((3,), "float64", {"encoding": "scalar", "form": "exact"})

# How the evidence must speak against a slip.
DIFFER = r"(float32|bfloat16): \d+ of \d+ entries differ"
EXCEED = r"float(32|64): \d+ of \d+ entries exceed the bound"
OTHER_REASONS = {
    "stride-to-tokens-always": r"float32: shape \(2, 4, 16, 4\), expected \(2, 3, 11, 4\)",
    "leak-of-one": "float64: the bound is not finite",
}
AT_THE_BORDER = ("ring-missing", "ring-before-only", "ring-of-means", "ring-of-edges")
FAMILIES = (
    "kernel-flipped",
    "query-minus-key",
    "stride-phase",
    "dilation-in-tokens",
    "one-head-less",
    "uniform-head-idle",
    "ring-missing",
    "patch-column-major",
    "softmax-over-queries",
)
OUTERMOST = 76 / 256  # of 8 × 32 pixels


# Ways to plant.


def around(module: Any, name: str, change: Callable[..., Any]) -> Plant:
    """A function or method; `change` gets the right one and then the arguments."""

    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        right = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *args, **kwargs: change(right, *args, **kwargs))

    return plant


def result_of(module: Any, name: str, change: Callable[[Any], Any]) -> Plant:
    """A function of the library, with its result changed."""
    return around(module, name, lambda right, *args, **kwargs: change(right(*args, **kwargs)))


def heads(construction: str, change: Callable[[Any, Any], Any]) -> Plant:
    """Another encoding and other maps of a construction, made from the right ones."""
    return result_of(table, f"{construction}_construction", lambda pair: change(*pair))


def encoded(construction: str, change: Callable[[Any], dict[str, Any]]) -> Plant:
    """Other fields of the encoding of a construction, made from the right one."""
    return heads(construction, lambda e, m: (replace(e, **change(e)), m))


def mapped(construction: str, change: Callable[[Any, Any], Any]) -> Plant:
    """Other maps of a construction, made from its encoding and the right ones."""
    return heads(construction, lambda e, m: (e, change(e, m)))


TAP_INDEX = ConvolutionGeometry.__dict__["tap_index"].func


def tap_index(change: Callable[[np.ndarray, int], np.ndarray]) -> Plant:
    """On each axis another [offset, output, input] -> tap, made from the right one and K."""
    changed = property(lambda self: tuple(map(change, TAP_INDEX(self), self.kernel_size)))
    return lambda monkeypatch: monkeypatch.setattr(ConvolutionGeometry, "tap_index", changed)


def taps_from(first: Callable[[int], int]) -> Plant:
    """The taps of a kernel of size K start at `first(K)`."""

    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        for module in (shifts, geometry):
            monkeypatch.setattr(module, "axis_taps", lambda k: range(first(k), first(k) + k))

    return plant


# Slips that take more than a line.


def dilation_in_tokens(right, k, p, d, *rest):
    """Multiply the offsets of the undilated convolution by d."""
    return tuple(d * offset for offset in right(k, p, 1, *rest))


def dilation_counts_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read d as the number of pixels left out between two taps."""
    of = ConvolutionGeometry.of
    monkeypatch.setattr(
        ConvolutionGeometry,
        "of",
        staticmethod(lambda k, p=1, s=1, d=1: replace(of(k, p, s, d), dilation=(d + 1,) * len(k))),
    )


def stride_to_tokens_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep pixels 0, s, … of every patch, whether s divides P or not."""
    monkeypatch.setattr(geometry, "strided_output_pixels", lambda p, s: range(0, p, s))
    for owner in (ConvolutionGeometry, AttentionLayer):
        monkeypatch.setattr(owner, "writes_stride_to_tokens", property(lambda self: True))
    pixels = property(
        lambda self: tuple(-(-p // s) for p, s in zip(self.patch_size, self.stride, strict=True))
    )
    monkeypatch.setattr(AttentionLayer, "output_patch_size", pixels)


def printed_scores(right, self, shifts, number_of_keys):
    """C20 eq. 9 as printed, v·r_δ, in bfloat16.

    At Δ = 18 the score of δ = 17 is -(288 - 36·17)·α = 324·α, and so is that of δ = 18.
    """
    target = printed_target(self.head_alpha[:, 0], self.head_centers).astype(jnp.bfloat16)
    features = jnp.asarray(printed_features(shifts), jnp.bfloat16)
    return (target @ features.T).astype(jnp.float32)


def column_first(encoding):
    """A head's centre as (column, row)."""
    fields = {name: getattr(encoding, name)[::-1] for name in ("alpha", "centers")}
    return {**fields, "pairs": tuple(pair[::-1] for pair in encoding.pairs)}


def mean_ring(right, tokens, ring):
    """Lay the mean token around the grid."""
    mean = tokens.mean(axis=(1, 2), keepdims=True)
    return right(tokens - mean, ring) + mean


def edge_ring(right, tokens, ring):
    """Repeat the outermost tokens."""
    return jnp.pad(tokens, [(0, 0), *ring, (0, 0)], mode="edge")


def query_without_ring(right, self):
    """Count queries from the first image token and keys from the first ring token."""
    lower = sum(before for before, _ in self.ring[-1:])
    return jnp.clip(right(self) + lower, 0, len(self.shifts) - 1)


def reordered(order: tuple[int, ...]) -> Plant:
    """Patches whose (row, column, channel) are flattened in another order."""

    def patchify(right, images, patch_size):
        tokens = right(images, patch_size)
        grid, channels = tokens.shape[:-1], images.shape[-1]
        parts = tokens.reshape(*grid, *patch_size, channels)
        return parts.transpose(0, 1, 2, *(3 + axis for axis in order)).reshape(*grid, -1)

    return around(application, "patchify", patchify)


def every_pth_pixel(right, images, patch_size):
    """Patches of pixels that lie a whole grid apart."""
    (rows, columns), (batch, height, width, channels) = patch_size, images.shape
    grid = (height // rows, width // columns)
    parts = images.reshape(batch, rows, grid[0], columns, grid[1], channels)
    return parts.transpose(0, 2, 4, 1, 3, 5).reshape(batch, *grid, -1)


def interleaved_groups(kernel, groups):
    """Give output channel j to group j mod g; the groups' outputs lie one after the other."""
    *taps, width, out = kernel.shape
    group_of = jnp.arange(out) % groups
    dense = jnp.zeros((*taps, groups, width, out), kernel.dtype)
    dense = dense.at[..., group_of, :, jnp.arange(out)].set(jnp.moveaxis(kernel, -1, 0))
    return dense.reshape(*taps, groups * width, out)


def queries_for_keys(right, self, grid):
    """The scores, but N counts the image's own tokens, without the ring."""
    table = self.shift_scores(grid.shifts, math.prod(grid.queries))
    return table[:, grid.shift_index()]


def roundoff_of_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    """Derive every bound with u = 2^-53."""
    for module in (rounding, bias_scores):
        monkeypatch.setattr(module, "unit_roundoff", lambda dtype: 2.0**-53)


FIRST_TWO = np.array([1, 1, *[0] * 8], np.float32)  # of ten pairs
CLOCKWISE = np.array([1.0, -1.0], np.float32)
OTHERS = [0, 1, 2, 3, 5, 6, 7, 8]
SOFTMAX_OVER_QUERIES = around(
    dense, "attention_weights", lambda right, s, mask: jax.nn.softmax(s, axis=-2)
)
SLIPS = {  # the layer, and how the error is planted
    "kernel-flipped": (PATCH, tap_index(lambda i, k: np.where(i < 0, i, k - 1 - i))),
    "axes-swapped": (
        PATCH,
        around(convolution, "token_maps", lambda right, w, sizes: right(w.swapaxes(0, 1), sizes)),
    ),
    "query-minus-key": (  # the heads look at q - δ, the maps stay where they are
        PATCH,
        encoded("bias", lambda e: {"offsets": tuple(map(from_query_minus_key, e.offsets))}),
    ),
    "taps-from-zero": (PATCH, taps_from(lambda k: 0)),
    "even-kernel-to-the-left": (EVEN, taps_from(lambda k: -(k // 2))),
    "tap-off-by-one": (PATCH, tap_index(lambda i, k: np.where((i < 0) | (i == k - 1), -1, i + 1))),
    "map-transposed": (PATCH, tap_index(lambda i, k: np.swapaxes(i, 1, 2))),
    "absent-is-centre": (PATCH, tap_index(lambda i, k: np.where(i < 0, (k - 1) // 2, i))),
    "stride-phase": (
        STRIDED,
        around(geometry, "strided_output_pixels", lambda right, p, s: range(s - 1, p, s)),
    ),
    "stride-to-tokens-always": (SUBSAMPLED, stride_to_tokens_always),
    "dilation-in-tokens": (DILATED, around(geometry, "axis_token_offsets", dilation_in_tokens)),
    "dilation-counts-gaps": (DILATED, dilation_counts_gaps),
    "head-twice": (PATCH, heads("bias", lambda e, m: (e.take_heads([0, 0, *range(2, 9)]), m))),
    "one-head-less": (  # the centre
        PATCH,
        heads("bias", lambda e, m: (e.take_heads(OTHERS), m[np.array(OTHERS)])),
    ),
    "maps-exchanged": (PATCH, mapped("bias", lambda e, m: m.at[:2].set(m[1::-1]))),
    "narrow-heads-look-alike": (
        NARROW,
        result_of(conversion, "split_heads", lambda split: ((0,) * len(split[0]), *split[1:])),
    ),
    "bias-too-low": (
        PATCH,
        around(table, "bias_construction", lambda right, maps, sizes, _: right(maps, sizes, 10.0)),
    ),
    "alpha-negative": (
        QUADRATIC,
        encoded("quadratic", lambda e: {"alpha": tuple(-alpha for alpha in e.alpha)}),
    ),
    "centres-swapped": (QUADRATIC, encoded("quadratic", column_first)),
    "printed-score-in-bfloat16": (
        FAR_QUADRATIC,
        around(QuadraticGridEncoding, "shift_scores", printed_scores),
    ),
    "spare-code-taken": (ENUMERATED, encoded("enumerated", lambda e: {"spare": 0})),
    "corners-clockwise": (POLYGON, encoded("polygon", lambda e: {"query": e.query * CLOCKWISE})),
    "turned-the-other-way": (
        ROTARY,
        encoded("rotary", lambda e: {"sine": tuple(-part for part in e.sine)}),
    ),
    "two-pairs-an-axis": (
        ROTARY,
        encoded("rotary", lambda e: {"turns": tuple(part * FIRST_TWO for part in e.turns)}),
    ),
    "no-one-over-one-minus-leak": (
        FINITE,
        mapped("finite", lambda e, m: m.at[:-1].multiply(1 - e.uniform_weight)),
    ),
    "uniform-head-idle": (FINITE, mapped("finite", lambda e, m: m.at[-1].set(0))),
    "uniform-head-adds": (FINITE, mapped("finite", lambda e, m: m.at[-1].multiply(-1))),
    "leak-of-one": (
        FINITE,
        encoded("finite", lambda e: {"uniform_weight": jnp.ones_like(e.uniform_weight)}),
    ),
    "leaky-bias-one-nat-low": (
        FINITE,
        around(BiasEncoding, "scale", lambda right, self, n: right(self, n) - 1),
    ),
    "leaky-bias-without-ring": (
        FINITE,
        around(RelativePosition, "positional_scores", queries_for_keys),
    ),
    "leaky-bias-frozen": (
        FINITE,
        around(BiasEncoding, "scale", lambda right, self, n: right(self, 16)),
    ),
    "gains-without-ring": (
        SCALAR,
        around(ScalarEncoding, "head_gains", lambda right, self, n: right(self, n - 2)),
    ),
    "gains-left-out": (SCALAR, around(ScalarEncoding, "head_gains", lambda right, self, n: None)),
    "ring-missing": (
        PIXEL,
        result_of(geometry, "zero_ring", lambda ring: tuple((0, 0) for _ in ring)),
    ),
    "ring-before-only": (
        PIXEL,
        result_of(geometry, "zero_ring", lambda ring: tuple(((a, 0) for a, _ in ring))),
    ),
    "ring-of-means": (PIXEL, around(dense, "add_zero_ring", mean_ring)),
    "ring-of-edges": (PIXEL, around(dense, "add_zero_ring", edge_ring)),
    "queries-counted-without-ring": (PATCH, around(TokenGrid, "shift_index", query_without_ring)),
    "patch-column-major": (PATCH, reordered((1, 0, 2))),
    "patch-channels-first": (PATCH, reordered((2, 0, 1))),
    "patch-of-distant-pixels": (PATCH, around(application, "patchify", every_pth_pixel)),
    "softmax-over-queries": (PATCH, SOFTMAX_OVER_QUERIES),
    "softmax-over-queries-leaky": (FINITE, SOFTMAX_OVER_QUERIES),
    "weights-in-float32": (
        FINITE,
        result_of(dense, "attention_weights", lambda a: a.astype("float32").astype("float64")),
    ),
    "bias-per-token": (
        PATCH,
        around(
            convolution,
            "token_bias",
            lambda right, bias, sizes: jnp.pad(bias, (0, right(bias, sizes).size - bias.size)),
        ),
    ),
    "bias-channels-first": (
        PATCH,
        around(
            convolution,
            "token_bias",
            lambda right, bias, sizes: jnp.repeat(bias, right(bias, sizes).size // bias.size),
        ),
    ),
    "bias-once-a-head": (PATCH, result_of(convolution, "token_bias", lambda bias: 9 * bias)),
    "roundoff-of-float64": (FINITE_FLOAT32, roundoff_of_float64),
}


@pytest.fixture(autouse=True)
def small_images_and_the_dense_back_end(monkeypatch: pytest.MonkeyPatch):
    """Two images of 8 × 32 pixels, through the dense back end, one operation after the other."""
    whole = layer_runs.whole_images
    monkeypatch.setattr(layer_runs, "whole_images", lambda run: whole(run, 2)[:, 8:16])
    for module in (layer_runs, majorant):
        monkeypatch.setattr(
            module,
            "apply_attention",
            lambda layer, images: application.apply_attention(layer, images, backend="dense"),
        )
    with jax.disable_jit():
        yield


def judgement(run, layer) -> str:
    size, dtype, options = layer
    return equals_convolution("images", size, dtypes=(dtype,), **options).check(run)


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in FAMILIES else pytest.mark.slow) for n in SLIPS]
)
def test_a_slip_is_noticed_for_its_reason(run, monkeypatch, name):
    layer, plant = SLIPS[name]
    plant(monkeypatch)
    with pytest.raises(EvidenceFailed) as caught:
        judgement(run, layer)
    usual = EXCEED if layer[2].get("form") == "exact" else DIFFER
    assert re.match(OTHER_REASONS.get(name, usual), str(caught.value))
    if name in AT_THE_BORDER:
        wrong, entries = map(int, re.findall(r"(\d+) of (\d+)", str(caught.value))[0])
        assert wrong <= OUTERMOST * entries


@pytest.mark.slow
@pytest.mark.parametrize("layer", {str(layer): layer for layer, _ in SLIPS.values()}.values())
def test_without_a_slip_nothing_is_noticed(run, layer):
    assert judgement(run, layer)


@pytest.mark.slow
def test_interleaved_groups_are_noticed(run, monkeypatch):
    """Output channel j belongs to group j mod g: three groups against their own convolutions."""
    images = layer_runs.whole_images(run)
    kernel = run.rng("kernel").integers(-3, 4, (3, 3, 1, 6))
    groups = [exact_convolution(images[..., [g]], kernel[..., 2 * g : 2 * g + 2]) for g in range(3)]

    def compare():
        layer = conversion.conv_to_attention(jnp.asarray(kernel, "float32"), groups=3, form="limit")
        result = layer_runs.apply_attention(layer, jnp.asarray(images, "float32"))
        return layer_runs.equal("float32", result, np.concatenate(groups, axis=-1))

    assert compare() == "float32 equal"
    monkeypatch.setattr(convolution, "expand_groups", interleaved_groups)
    with pytest.raises(EvidenceFailed, match=DIFFER):
        compare()
