"""`attention_of`: the attention layers of a function, the function of them, and a report."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from convattn.encodings.layer import AttentionLayer
from convattn.networks.transformation.application import Application, names_of
from convattn.networks.transformation.attention import ConversionOptions
from convattn.networks.transformation.evaluation import Scope
from convattn.networks.transformation.provenance import kernel_digests
from convattn.networks.transformation.recording import Recording
from convattn.networks.transformation.report import Report, output_difference, reported
from convattn.networks.transformation.with_attention import Traced, require_function


class Attention(NamedTuple):
    """Unpacks as `layers, apply, report`.

    Attributes:
        layers: By the names of the convolutions; a pytree. Before its own axes a layer has one for
            each scan between whose steps its kernel differs.
        apply: The function with these layers, or others of their structure:
            `apply(layers, *arguments)`; `apply.inputs(layers, *arguments)` are the images that each
            is given.
        report: How it compares with the function on the example.
    """

    layers: dict[str, AttentionLayer]
    apply: Application
    report: Report


def attention_of(function: Callable[..., Any], *example: Any, **options: Any) -> Attention:
    """The attention layers that take the place of a function's convolutions.

    A convolution whose kernel does not depend on the arguments has a layer of its own, which can be
    trained and saved. One whose kernel is computed from them (a filter that follows the image, or
    parameters that are arguments) is attention made from that kernel at each call; so is one in a
    loop without a fixed number of steps, a branch that the example does not take, or a function
    with a derivative of its own. One that is computed from the sizes of the arguments is that of
    the example; arguments on which the function has other convolutions are refused. A kernel that
    is read at two places has two layers, which training tells apart.

    Args:
        function: Takes and gives pytrees of arrays. Parameters that are to be layers stand in it,
            as in `lambda images: model.apply(parameters, images)`.
        example: What it is called with. The two runs are compared on it.
        options: As for `with_attention`.

    Raises:
        ValueError: As `with_attention` does, for a function of which no convolution is converted,
            and for one that changes arrays in place (`jax.new_ref`).

    Source: S.finite, S.pad, S.network of this project's ledger.

    >>> import jax, jax.numpy as jnp
    >>> kernel = jnp.ones((3, 3, 1, 2)) / 9
    >>> def features(images):
    ...     padding, order = "SAME", ("NHWC", "HWIO", "NHWC")
    ...     with jax.named_scope("blur"):
    ...         return jax.lax.conv_general_dilated(
    ...             images, kernel, (2, 2), padding, dimension_numbers=order
    ...         )
    >>> layers, apply, report = attention_of(features, jnp.ones((1, 8, 8, 1)))
    >>> layers["blur"].heads, report.passed, report.difference < 1e-6
    (10, True, True)
    >>> apply(layers, jnp.ones((4, 8, 8, 1))).shape
    (4, 4, 4, 2)
    """
    require_function(function)
    known = list(inspect.signature(ConversionOptions).parameters)
    if unknown := [name for name in options if name not in known]:
        raise ValueError(f"{unknown[0]}=…, but expected options among {', '.join(known)}")
    if any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves(example)):
        raise ValueError(
            "example holds a ShapeDtypeStruct, but expected arrays, on which the runs are "
            "compared; for shapes alone call it inside jax.eval_shape"
        )
    chosen = ConversionOptions(**options)
    traced = Traced.of(function, example, {})
    recording = Recording(chosen, names_of(traced.jaxpr.jaxpr))
    values = recording.closed(traced.jaxpr, [*map(recording.argument, traced.arrays)], Scope())
    if not recording.calls and not recording.excluded:
        raise ValueError(
            "the function has no convolution that becomes attention"
            + "".join(f"; {line}" for line in recording.left)
        )
    layers, digests = {}, kernel_digests(traced.jaxpr, recording.names)
    for name, calls in recording.calls.items():
        layer = recording.layer(name, calls)
        if layer is not None and digests.get(name) is not None:
            layers[name] = layer
    depths = {name: frozenset(map(len, recording.loops(name))) for name in layers}
    expected = traced.output([value.left for value in values])
    result = traced.output([value.right for value in values])
    lines = tuple(
        reported(name, calls[0].layer.heads, calls[0].groups, [call.measured for call in calls])
        for name, calls in recording.calls.items()
    )
    apply = Application(
        function,
        chosen,
        depths,
        frozenset(recording.names.values()),
        recording.forms,
        digests,
    )
    difference, most, same = output_difference(expected, result) or (None, None, None)
    if recording.jumps and difference is not None:
        # Where a step decides, the program that is delivered may take the other side of it.
        again = output_difference(expected, apply(layers, *example))
        assert again is not None
        difference, same = float(np.maximum(difference, again[0])), same and again[2]
    bounds = () if difference is None else recording.tape.bounds(values)
    without_rule = bounds if isinstance(bounds, str) else None
    columns = () if isinstance(bounds, str) else [column.tolist() for column in bounds]
    report = Report(
        lines,
        difference,
        most,
        same,
        tuple(recording.left),
        tuple(zip(*columns, strict=True)),
        without_rule,
    )
    return Attention(layers, apply, report)
