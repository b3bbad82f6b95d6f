"""Every `nnx.Conv` of a model as attention, and back.

A model is converted in a copy. What a module does with its convolutions is not looked at, so any
model will do whose convolutions are `nnx.Conv`s that it holds as attributes, or in lists or
dictionaries. One that is held twice is converted once and stays shared.

The difference on the example is measured; for each layer there is also a bound on it, derived from
the layer's own inputs: that of `convattn.bounds.rounding` for the attention, and γ_(n+2)·G for the
convolution, a sum of n products and the bias, G being the majorant of both.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array

from convattn.bounds.majorant import majorant_layer
from convattn.bounds.rounding import layer_error_bound
from convattn.encodings.layer import AttentionLayer
from convattn.nnx.attention_conv import AttentionConv, grouped_attention
from convattn.operators.arrays import accumulation_dtype
from convattn.operators.roundoff import gamma, unit_roundoff


@dataclass(frozen=True)
class LayerReport:
    """One converted layer.

    Attributes:
        path: Where it stands in the model, such as `"blocks.0.conv"`.
        heads: Of each group of channels.
        groups: Of channels.
        difference: The largest between the layer and its convolution on the layer's own inputs, of
            all its calls, or None where these could not be seen: inside a compiled part of the
            model, or where the example does not reach the layer.
        bound: The derived bound on it; None also for the limit form, and for dtypes below float32.
    """

    path: str
    heads: int
    groups: int
    difference: float | None
    bound: float | None


@dataclass(frozen=True)
class Report:
    """How a converted model compares with the model on the example.

    Attributes:
        layers: In the order of their paths in the model.
        difference: The largest of all outputs.
        largest: The largest output in absolute value.
        same_class: Whether the largest entry of the last axis is the same everywhere.
    """

    layers: tuple[LayerReport, ...]
    difference: float
    largest: float
    same_class: bool

    def __str__(self) -> str:
        """One line for each layer, and one for the model."""

        def number(value: float | None) -> str:
            return "-" if value is None else f"{value:.2e}"

        width = max((len(layer.path) for layer in self.layers), default=0)
        lines = [
            f"{layer.path:<{width}}  {layer.heads} heads"
            + (f" × {layer.groups} groups" if layer.groups > 1 else "")
            + f"  difference {number(layer.difference)}  bound {number(layer.bound)}"
            for layer in self.layers
        ]
        classes = "the same classes" if self.same_class else "OTHER CLASSES"
        total = f"{len(lines)} layers; the outputs differ by {self.difference:.2e} at most, of "
        return "\n".join([*lines, f"{total}{self.largest:.3g}: {classes}"])


class Converted(NamedTuple):
    """Unpacks as `model, report`."""

    model: Any
    report: Report


def to_attention(
    model: Any,
    example: Any,
    *,
    call: Callable[..., Any] | None = None,
    where: Callable[[str, nnx.Conv], bool] | None = None,
    exact: bool = True,
    leak: float = 0.5,
    head_dim: int | None = None,
) -> Converted:
    """A copy of a model with attention in place of its convolutions, and how it compares.

    Args:
        model: Any `nnx.Module`; its mode, training or evaluation, is kept, and so is its state.
        example: What the model is called with: an array, or a tuple of arguments.
        call: What calls the model, `call(model, *arguments)`, where it takes keyword arguments.
        where: Which convolutions, by path and module; None takes all that stand in modules, lists
            and dictionaries. One that a function holds cannot be seen.
        exact, leak, head_dim: As for `AttentionConv`.

    Raises:
        ValueError: For a model without convolutions, for parameters that two of them share, and for
            a layer that cannot be converted, naming it: transposed and 3-D ones, subclasses of
            `nnx.Conv`, those of scanned modules, those with input_dilation, a mask or a convolution
            of their own, and outputs larger than the image; leave such a layer out with `where`.

    Source: S.network, S.pad.

    >>> net = nnx.Sequential(nnx.Conv(1, 2, (3, 3), strides=2, rngs=nnx.Rngs(0)), nnx.relu)
    >>> attention, report = to_attention(net, jnp.ones((1, 8, 8, 1)))
    >>> report.layers[0].heads, report.difference < 1e-6
    (10, True)
    """
    if not isinstance(model, nnx.Module):
        raise ValueError(f"model={type(model).__name__}, but expected an nnx.Module")
    if where is not None and not callable(where):
        raise ValueError(f"where={where!r}, but expected a function of path and module")
    if isinstance(example, list):
        raise ValueError("example is a list, but expected an array, or a tuple of arguments")
    arguments = example if type(example) is tuple else (example,)
    call = call or (lambda model, *given: model(*given))
    watched = nnx.List([nnx.clone(model)])
    originals = chosen(watched, where)
    attention, made = replaced(model, where, exact=exact, leak=leak, head_dim=head_dim)
    seen = watch(site.module for site in originals)
    expected, found = call(watched[0], *arguments), call(nnx.clone(attention), *arguments)
    layers = []
    for site in originals:
        layer, calls = made[site.path], seen.get(id(site.module), [])
        differences = [layer(inputs) - outputs for inputs, outputs in calls]
        bounds = [layer_bound(layer, site.module, inputs) for inputs, _ in calls]
        derived = [bound for bound in bounds if bound is not None]
        layers.append(
            LayerReport(
                site.path,
                layer.heads,
                layer.feature_group_count,
                largest(differences) if differences else None,
                max(derived) if derived and len(derived) == len(bounds) else None,
            )
        )
    return Converted(attention, Report(tuple(layers), *output_difference(expected, found)))


def chosen(root: nnx.List, where: Callable[[str, nnx.Conv], bool] | None) -> list["Site"]:
    """The convolutions of `root[0]` that are to be converted.

    Raises:
        ValueError: If there are none, and as `require_own_parameters` does.
    """
    found = sites(root, (nnx.Conv, nnx.ConvTranspose))
    taken = [site for site in found if where is None or where(site.path, site.module)]
    if not taken:
        raise ValueError(
            f"model={type(root[0]).__name__} holds no nnx.Conv"
            + (
                " that `where` takes"
                if where
                else "; it may call lax.conv, or be converted already"
            )
        )
    require_own_parameters(taken)
    return taken


def replaced(
    model: Any, where: Callable[[str, nnx.Conv], bool] | None = None, **options: Any
) -> tuple[Any, dict[str, AttentionConv]]:
    """A copy of a model with attention in place of its convolutions, and the layers by path.

    Args:
        options: exact, leak and head_dim.

    Raises:
        ValueError: As `to_attention` does.
    """
    root = nnx.List([nnx.clone(model)])
    made: dict[int, AttentionConv] = {}
    paths = {}
    for site in chosen(root, where):
        if id(site.module) not in made:
            try:
                made[id(site.module)] = AttentionConv.from_conv(site.module, **options)
            except ValueError as error:
                raise ValueError(f"{site.path or 'the model'}: {error}") from error
        paths[site.path] = made[id(site.module)]
        site.put(paths[site.path])
    return root[0], paths


class Recovered(NamedTuple):
    """Unpacks as `model, distances`.

    Attributes:
        model: With convolutions.
        distances: By path, |L - C|/|L| of each layer of attention from its convolution; of layers
            that were not trained, rounding.
    """

    model: Any
    distances: dict[str, float]


def to_convolution(model: Any) -> Recovered:
    """A copy of a model with the nearest `nnx.Conv` in place of every `AttentionConv`.

    Raises:
        ValueError: For a model without any.

    >>> net = nnx.Sequential(nnx.Conv(1, 2, (3, 3), strides=2, rngs=nnx.Rngs(0)), nnx.relu)
    >>> image = jnp.ones((1, 8, 8, 1))
    >>> back, distances = to_convolution(to_attention(net, image).model)
    >>> bool(jnp.allclose(back(image), net(image), atol=1e-6)), distances["layers.0"] < 1e-6
    (True, True)
    """
    root = nnx.List([nnx.clone(model)])
    found = sites(root, (AttentionConv,))
    if not found:
        raise ValueError(f"model={type(model).__name__} holds no AttentionConv")
    made = {}
    for site in found:
        if id(site.module) not in made:
            made[id(site.module)] = site.module.to_conv()
        site.put(made[id(site.module)].conv)
    return Recovered(root[0], {site.path: made[id(site.module)].distance for site in found})


class Site(NamedTuple):
    """Where a module stands in a model.

    Attributes:
        path: From the model, such as `"blocks.0.conv"`.
        holder: The module, list or dictionary that holds it, under `key`.
        module: What stands there.
    """

    path: str
    holder: Any
    key: Any
    module: Any

    def put(self, module: nnx.Module) -> None:
        """Set another module in its place."""
        if isinstance(self.holder, list | dict):
            self.holder[self.key] = module
        else:
            setattr(self.holder, self.key, module)


def sites(root: nnx.List, kinds: tuple[type, ...]) -> list[Site]:
    """Every place in `root[0]` that holds a module of these kinds; a shared one has several.

    Raises:
        ValueError: For one that is held by something else than a module, a list or a dictionary.
    """
    found, reached = [], {}
    for path, node in nnx.iter_graph(root):
        if isinstance(node, kinds):
            reached[id(node)] = path
        held: Iterator[tuple[Any, Any]] | Any = ()
        if isinstance(node, nnx.Module):
            held = vars(node).items()
        elif isinstance(node, list):
            held = enumerate(node)
        elif isinstance(node, dict):
            held = node.items()
        for key, child in held:
            if isinstance(child, kinds):
                name = ".".join(str(part) for part in (*path, key)[1:])
                found.append(Site(name, node, key, child))
    for site in found:
        reached.pop(id(site.module), None)
    for path in reached.values():
        raise ValueError(
            f"{'.'.join(map(str, path[1:]))} is held by something else than a module, a list or a "
            "dictionary, and cannot be replaced; hold it in an nnx.List"
        )

    def natural(site: Site) -> list[str]:
        return [part.zfill(6) if part.isdigit() else part for part in site.path.split(".")]

    return sorted(found, key=natural)


def require_own_parameters(found: Sequence[Site]) -> None:
    """Refuse modules that share a parameter: each would get maps of its own.

    Raises:
        ValueError: As described above.
    """
    owners: dict[int, Site] = {}
    for site in found:
        for name in ("kernel", "bias"):
            variable = getattr(site.module, name)
            first = owners.setdefault(id(variable), site)
            if variable is not None and first.module is not site.module:
                raise ValueError(
                    f"{site.path}.{name} is also {first.path}.{name}, but expected a parameter of "
                    "its own: shared modules stay shared, shared parameters do not"
                )


def watch(modules: Any, kind: Any = nnx.Conv) -> dict[int, list[tuple[Array, Array]]]:
    """Layers of a kind that note their inputs and outputs, call by call, by their identity."""
    seen: dict[int, list[tuple[Array, Array]]] = {}

    class Watched(kind):
        """Notes each call, unless it is traced."""

        def __call__(self, inputs: Array, *given: Any, **named: Any) -> Array:
            outputs = super().__call__(inputs, *given, **named)
            if not isinstance(inputs, jax.core.Tracer):
                seen.setdefault(id(self), []).append((inputs, outputs))
            return outputs

    for module in modules:
        module.__class__ = Watched
    return seen


def output_difference(expected: Any, found: Any) -> tuple[float, float, bool]:
    """The largest difference of all outputs, the largest output, and whether classes agree."""
    both = zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True)
    pairs = [
        (jnp.asarray(one).astype(float), jnp.asarray(other).astype(float))
        for one, other in both
        if isinstance(one, jax.Array | np.ndarray | float | int)
    ]
    if not pairs:
        raise ValueError(
            f"the model gives {type(expected).__name__} on the example, but expected an array, or "
            "several in a tuple, list or dictionary"
        )
    same = all(bool((a.argmax(-1) == b.argmax(-1)).all()) for a, b in pairs if a.size and a.ndim)
    return largest([a - b for a, b in pairs]), largest([a for a, _ in pairs]), same


def largest(arrays: Sequence[Array]) -> float:
    """The largest entry in absolute value; not a number if one is not."""
    return float(np.max([float(jnp.abs(array).max(initial=0)) for array in arrays]))


def layer_bound(layer: AttentionConv, conv: nnx.Conv, inputs: Array) -> float | None:
    """A bound on |layer(inputs) - conv(inputs)|, or None where none is derived.

    It assumes that the convolution is a sum of products in its own dtype, as it is on a CPU.
    """
    group = layer.group_layer()
    if layer.leak is None or group.output is None:
        return None
    dtype = jnp.result_type(inputs, group.output) if layer.dtype is None else layer.dtype
    if jnp.finfo(dtype).bits < 32:
        return None
    kernel, bias = conv.kernel[...], None if conv.bias is None else conv.bias[...]
    axes = len(layer.kernel_size)
    images = inputs.reshape(-1, *inputs.shape[inputs.ndim - axes - 1 :])
    with jax.enable_x64(True):
        found = grouped_majorant(group, kernel, bias, images, layer.feature_group_count)
        majorant = np.asarray(found)
    own = gamma(prod(kernel.shape[:-1]) + 2, unit_roundoff(accumulation_dtype(dtype)))
    try:
        attention = layer_error_bound(group, images.astype(dtype), majorant)
    except ValueError:  # the dtype is too narrow for any
        return None
    return float((attention + own * majorant * (1 + 2.0**-20)).max(initial=0))


@partial(jax.jit, static_argnames="groups")
def grouped_majorant(
    layer: AttentionLayer, kernel: Array, bias: Array | None, images: Array, groups: int
) -> Array:
    """G of `convattn.bounds.majorant`, group by group, as one program."""
    wide = majorant_layer(layer, kernel, None)
    found = grouped_attention(wide, jnp.abs(images.astype(jnp.float64)), groups)
    return found if bias is None else found + jnp.abs(bias.astype(jnp.float64))
