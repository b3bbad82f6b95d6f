"""Whether the parts of a layer fit together, for layers that come from a file."""

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import jax
import numpy as np

from convattn.encodings import (
    BiasEncoding,
    EnumeratedEncoding,
    MixtureEncoding,
    ScalarEncoding,
)
from convattn.encodings.layer import AttentionLayer, ContentScores
from convattn.networks.weights.axis_consistency import check_axis_parts
from convattn.networks.weights.files import require_finite
from convattn.operators.patches import Ring, check_ring
from convattn.operators.shifts import TokenGrid, per_axis

# The number of axes of each field that is an array, by class; all begin with the number of heads.
RANKS = {
    "BiasEncoding": {"values": 2, "leak": 0},
    "EnumeratedEncoding": {"alpha": 1, "targets": 1},
    "GaussianEncoding": {"centers": 2, "root_precision": 3},
    "MixtureEncoding": {"weights": 2},
    "QuadraticEncoding": {"alpha": 1, "centers": 2},
    "ScalarEncoding": {"exponents": 1, "log_bases": 1, "logit": 0},
    "RelativeEncoding": {"query": 2, "position_key": 3},
    "AbsoluteEncoding": {"query": 3, "key": 3},
    "LearnedEncoding": {"query": 2},
    "ContentScores": {"query": 3, "key": 3, "query_bias": 2, "key_bias": 2},
}
NOT_PER_HEAD = ("leak", "logit", "log_bases")
MOST_KEYS = 2**24  # of a single query; a ring of 2000 tokens on every side of it has fewer


def check_layer(layer: AttentionLayer) -> None:
    """Refuse a layer whose sizes contradict each other, or whose numbers are not finite.

    Raises:
        ValueError: As described above.

    >>> import convattn as ca
    >>> check_layer(ca.conv_to_attention([[[1.0]], [[2.0]], [[3.0]]]))
    """
    for path, leaf in jax.tree_util.tree_flatten_with_path(layer)[0]:
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        if isinstance(leaf, jax.core.Tracer):
            raise ValueError(f"{name} is traced; save a layer outside jit and grad")
        require_finite(np.asarray(leaf), name)
    _check_arrays(layer.encoding, "encoding")
    _check_table(layer.encoding)
    _check_leak(layer.encoding)
    _check_shares(layer.encoding)
    check_axis_parts(layer.encoding)
    axes = len(layer.patch_size)
    if axes not in (1, 2):
        raise ValueError(f"patch_size={layer.patch_size}, but should have one or two axes")
    for name in ("patch_size", "stride", "dilation"):
        per_axis(getattr(layer, name), axes, name)
    _check_room(check_ring(layer.ring, axes))
    heads, pixels = layer.heads, math.prod(layer.patch_size)
    _check_map(layer.value, "value", heads, pixels, None)
    _check_map(layer.output, "output", heads, None, math.prod(layer.output_patch_size))
    if layer.value is not None and layer.output is not None:
        _same(layer.value.shape[2], layer.output.shape[1], "the head dimension of value and output")
    if layer.bias is not None:
        if layer.bias.ndim != 1:
            raise ValueError(f"bias.shape={layer.bias.shape}, but should have one axis")
        last = layer.output if layer.output is not None else layer.value
        if last is not None:
            _same(layer.bias.shape[0], last.shape[2], "the length of bias and the maps' width")
    if layer.content is not None:
        _check_arrays(layer.content, "content")
        _same(layer.content.query.shape[0], heads, "the heads of content and of encoding")
        _check_content_tables(layer.content, axes)
        first = layer.value if layer.value is not None else layer.output
        if first is not None:
            _same(layer.content.query.shape[1], first.shape[1], "the features of content and maps")
    grid = TokenGrid((1,) * axes, layer.ring)
    scores = jax.eval_shape(lambda: layer.encoding.positional_scores(grid))
    _same(scores.shape[0], heads, "the heads of the scores and of encoding")


def _check_arrays(part: Any, where: str) -> None:
    ranks = RANKS.get(type(part).__name__, {})
    leading: dict[str, int] = {}
    for field in fields(part):
        array = getattr(part, field.name)
        if field.name not in ranks or array is None:
            continue
        if array.ndim != ranks[field.name] or 0 in array.shape:
            raise ValueError(
                f"{where}.{field.name}.shape={array.shape}, but should have {ranks[field.name]} "
                "axes, none of them empty"
            )
        if field.name not in NOT_PER_HEAD:
            leading[field.name] = array.shape[0]
    if len({*leading.values()}) > 1:
        raise ValueError(f"the first axes of {where}, its heads, differ: {leading}")


def _check_table(encoding: Any) -> None:
    if not isinstance(
        encoding, BiasEncoding | EnumeratedEncoding | MixtureEncoding | ScalarEncoding
    ):
        return
    offsets: Sequence[Any] = encoding.offsets
    sizes = {len(offset) if isinstance(offset, tuple) else 0 for offset in offsets}
    if not offsets or len({*offsets}) < len(offsets) or len(sizes) > 1 or 0 in sizes:
        raise ValueError(f"encoding.offsets={offsets}, but should be distinct shifts")
    entries = {
        BiasEncoding: lambda e: e.values.shape[1],
        EnumeratedEncoding: lambda e: len(e.codes),
        MixtureEncoding: lambda e: e.weights.shape[1],
        ScalarEncoding: lambda e: e.log_bases.shape[0],
    }[type(encoding)](encoding)
    _same(entries, len(offsets), "the entries of encoding and its offsets")


def _check_leak(encoding: Any) -> None:
    if not isinstance(encoding, BiasEncoding) or encoding.leak is None:
        return
    if not 0 < encoding.leak < 1:
        raise ValueError(
            f"encoding.leak={float(encoding.leak)} in {encoding.leak.dtype}, but should lie "
            "strictly between 0 and 1; has a leak near one of them been rounded to it?"
        )


def _check_shares(encoding: Any) -> None:
    if isinstance(encoding, MixtureEncoding) and (encoding.weights < 0).any():
        raise ValueError(
            f"encoding.weights has the entry {float(encoding.weights.min())}, but the shares of a "
            "mixture are nonnegative; is a sign in the value map meant?"
        )


def _check_content_tables(content: ContentScores, axes: int) -> None:
    """One table for each axis, of an odd number of vectors, with the queries' features in all."""
    if content.tables is None:
        return
    shapes = [table.shape for table in content.tables]
    if len(shapes) != axes or any(
        len(shape) != 2 or shape[0] % 2 == 0 or shape[1] == 0 for shape in shapes
    ):
        raise ValueError(
            f"content.tables have the shapes {shapes}, but there should be one for each of {axes} "
            "axes, [2n - 1, features]"
        )
    features = sum(shape[1] for shape in shapes)
    _same(features, content.query.shape[2], "the features of content's tables and of its queries")


def _check_room(ring: Ring) -> None:
    keys = math.prod(1 + before + after for before, after in ring)
    if keys > MOST_KEYS:
        raise ValueError(
            f"ring={ring}, which gives a single query {keys} keys, but at most {MOST_KEYS} are "
            "expected; a ring is as wide as half the kernel, in patches"
        )


def _check_map(
    array: jax.Array | None, name: str, heads: int, rows: int | None, columns: int | None
) -> None:
    if array is None:
        return
    if array.ndim != 3 or 0 in array.shape:
        raise ValueError(f"{name}.shape={array.shape}, but should have 3 axes, none of them empty")
    _same(array.shape[0], heads, f"the heads of {name} and of encoding")
    for size, pixels in ((array.shape[1], rows), (array.shape[2], columns)):
        if pixels is not None and size % pixels:
            raise ValueError(f"{name}.shape={array.shape}, but a patch has {pixels} pixels")


def _same(got: int, expected: int, what: str) -> None:
    if got != expected:
        raise ValueError(f"{what} differ: {got} and {expected}")
