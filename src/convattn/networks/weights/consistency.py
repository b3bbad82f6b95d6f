"""Whether the parts of a layer fit together, for layers that come from a file."""

import math

import jax
import numpy as np

from convattn.constructions.geometry import MAX_STEPS
from convattn.constructions.two_layers import TwoLayers
from convattn.encodings.base import Encoding, check_parts
from convattn.encodings.bias import BiasEncoding
from convattn.encodings.layer import AttentionLayer, ContentScores
from convattn.networks.weights.files import require_finite
from convattn.operators.integers import per_axis
from convattn.operators.padding import Padding
from convattn.operators.patches import check_ring
from convattn.operators.shifts import TokenGrid


def check_layer(layer: AttentionLayer | TwoLayers) -> None:
    """Refuse a layer whose sizes contradict each other, or whose numbers are not finite.

    >>> import convattn as ca
    >>> check_layer(ca.conv_to_attention([[[1.0]], [[2.0]], [[3.0]]]))
    """
    if isinstance(layer, TwoLayers):
        _check_two(layer)
        return
    for path, leaf in jax.tree_util.tree_flatten_with_path(layer)[0]:
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        if isinstance(leaf, jax.core.Tracer):
            raise ValueError(f"{name} is traced; save a layer outside jit and grad")
        require_finite(np.asarray(leaf), name)
    if isinstance(layer.encoding, Encoding):
        layer.encoding.check()
    axes = len(layer.patch_size)
    if axes not in (1, 2):
        raise ValueError(f"patch_size={layer.patch_size}, but expected one or two axes")
    for name, most in MAX_STEPS.items():
        per_axis(getattr(layer, name), axes, name, most=most)
    check_ring(layer.ring, axes)
    layer.check_causal()
    if layer.padding is not None:
        _check_padding(layer, layer.padding, axes)
    heads, pixels = layer.heads, math.prod(layer.patch_size)
    _check_map(layer.value, "value", heads, pixels, None)
    _check_map(layer.output, "output", heads, None, math.prod(layer.output_patch_size))
    if layer.value is not None and layer.output is not None:
        _same(layer.value.shape[2], layer.output.shape[1], "the head dimension of value and output")
    if layer.bias is not None:
        if layer.bias.ndim != 1:
            raise ValueError(f"bias.shape={layer.bias.shape}, but expected one axis")
        last = layer.output if layer.output is not None else layer.value
        if last is not None:
            _same(layer.bias.shape[0], last.shape[2], "the length of bias and the maps' width")
    if layer.content is not None:
        check_parts(layer.content, "content")
        _same(layer.content.query.shape[0], heads, "the heads of content and of encoding")
        _check_content_tables(layer.content, axes)
        first = layer.value if layer.value is not None else layer.output
        if first is not None:
            _same(layer.content.query.shape[1], first.shape[1], "the features of content and maps")
    if layer.register is not None:
        check_parts(layer.register, "register")
        _same(layer.register.scores.shape[0], heads, "the heads of register and of encoding")
    grid = TokenGrid((1,) * axes, layer.ring)
    scores = jax.eval_shape(lambda: layer.encoding.positional_scores(grid))
    _same(scores.shape[0], heads, "the heads of the scores and of encoding")


def _check_content_tables(content: ContentScores, axes: int) -> None:
    """One table for each axis, of an odd number of vectors, with the queries' features in all."""
    if content.tables is None:
        return
    shapes = [table.shape for table in content.tables]
    if len(shapes) != axes or any(
        len(shape) != 2 or shape[0] % 2 == 0 or shape[1] == 0 for shape in shapes
    ):
        raise ValueError(
            f"content.tables have the shapes {shapes}, but expected one for each of {axes} "
            "axes, [2n - 1, features]"
        )
    features = sum(shape[1] for shape in shapes)
    _same(features, content.query.shape[2], "the features of content's tables and of its queries")


def _check_two(layers: TwoLayers) -> None:
    """Whether the two are as `two_layers` makes them, whatever their numbers."""
    reaches, maps = [], []
    for layer in (layers.first, layers.second):
        check_layer(layer)
        encoding, output = layer.encoding, layer.output
        if not isinstance(encoding, BiasEncoding) or layer.value is not None or output is None:
            raise ValueError("one of two layers is no bias layer with one map for each head")
        if (encoding.uniform_weight is None) == layers.exact:
            raise ValueError(f"exact={layers.exact}, but the layers' leak says otherwise")
        _same(layer.patch_size, (1, 1), "the patch size of one of two layers")
        reaches += [(-min(at), max(at)) for at in zip(*encoding.offsets, strict=True)]
        maps.append(output.shape)
    (down, across), (up, right) = reaches[:2], reaches[2:]
    none = (0, 0)
    _same((layers.first.ring, across), ((down, none), none), "the first layer's ring and offsets")
    _same((layers.second.ring, up), ((none, right), none), "the second layer's ring and offsets")
    for name in ("patch_size", "stride"):
        per_axis(getattr(layers, name), 2, name, most=MAX_STEPS[name])
    _same(maps[0][2], maps[1][1], "the features between two layers")
    if layers.bias is not None:
        require_finite(np.asarray(layers.bias), "bias")
        width = maps[1][2] // math.prod(layers.patch_size)
        _same(layers.bias.shape, (width,), "the shape of bias and the channels out")


def _check_padding(layer: AttentionLayer, padding: Padding, axes: int) -> None:
    reach, by_rule = padding.reach, padding.widths == ()
    widths = reach if by_rule else padding.widths
    wrong_rule = padding.fill != "ZEROS" if by_rule else padding.lower
    known = all(isinstance(part, tuple) for part in (reach, widths))
    if not known or wrong_rule or not isinstance(padding.lower, bool):
        raise ValueError(
            f"padding={tuple(padding)}, but expected a fill, and (before, after) for each axis "
            "twice; without widths zeros, and whether an odd one stands before the image"
        )
    for part in (reach, widths):
        check_ring(part, axes)
    needed = tuple(
        (-(-before // patch), -(-after // patch))
        for (before, after), patch in zip(reach, layer.patch_size, strict=True)
    )
    if layer.ring != needed:
        raise ValueError(
            f"ring={layer.ring}, but a kernel that reaches over {reach} pixels needs {needed}"
        )
    if padding.is_too_wide:
        raise ValueError(
            f"padding.widths={padding.widths}, but expected at most {reach}, as far as the kernel "
            "reaches, on both sides of an axis together"
        )


def _check_map(
    array: jax.Array | None, name: str, heads: int, rows: int | None, columns: int | None
) -> None:
    if array is None:
        return
    if array.ndim != 3 or 0 in array.shape:
        raise ValueError(f"{name}.shape={array.shape}, but expected 3 axes, none empty")
    _same(array.shape[0], heads, f"the heads of {name} and of encoding")
    for size, pixels in ((array.shape[1], rows), (array.shape[2], columns)):
        if pixels is not None and size % pixels:
            raise ValueError(f"{name}.shape={array.shape}, but a patch has {pixels} pixels")


def _same(got: object, expected: object, what: str) -> None:
    if got != expected:
        raise ValueError(f"{what} differ: {got} and {expected}")
