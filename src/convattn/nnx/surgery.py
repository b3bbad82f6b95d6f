"""Every `nnx.Conv` of a model as attention, and back.

A model is converted in a copy. What a module does with its convolutions is not looked at, so any
model will do whose convolutions are `nnx.Conv`s that it holds as attributes, or in lists or
dictionaries. One that is held twice is converted once and stays shared.

The difference on the example is measured; for each layer there is also a bound on it, derived from
the layer's own inputs (`convattn.networks.transformation.local_error`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from flax import nnx
from jax import Array

from convattn.networks.transformation.attention_of import attention_of
from convattn.networks.transformation.report import (
    LayerReport,
    RecoveredLayer,
    Report,
    is_traced,
    largest,
    output_difference,
    remaining_convolutions,
)
from convattn.nnx.attention_conv import AttentionConv, relative_difference
from convattn.nnx.foreign import require_module


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
            and dictionaries. One that a function holds cannot be seen: it is counted as left.
        exact, leak, head_dim: As for `AttentionConv`.

    Raises:
        ValueError: For a model without convolutions, for parameters of theirs that anything else in
            the model holds, and for
            a layer that cannot be converted, naming it: transposed and 3-D ones, subclasses of
            `nnx.Conv`, those with input_dilation, a mask or a convolution
            of their own, those whose kernel a wrapper computes (`nnx.WeightNorm`,
            `nnx.SpectralNorm`), and outputs larger than the image; leave such a layer out with
            `where`. For a model of another framework.

    Under `jax.jit` or `jax.eval_shape` the model is made, and nothing is measured.

    Source: S.network, S.pad.

    >>> import jax.numpy as jnp
    >>> net = nnx.Sequential(nnx.Conv(1, 2, (3, 3), strides=2, rngs=nnx.Rngs(0)), nnx.relu)
    >>> attention, report = to_attention(net, jnp.ones((1, 8, 8, 1)))
    >>> report.layers[0].heads, report.difference < 1e-6
    (10, True)
    """
    require_module(model)
    if where is not None and not callable(where):
        raise ValueError(f"where={where!r}, but expected a function of path and module")
    if isinstance(example, list):
        raise ValueError("example is a list, but expected an array, or a tuple of arguments")
    arguments = example if type(example) is tuple else (example,)
    call = call or (lambda model, *given: model(*given))
    watched = nnx.List([nnx.clone(model)])
    originals = chosen(watched, where)
    attention, made = replaced(model, where, exact=exact, leak=leak, head_dim=head_dim)
    before = [site.module.kernel[...] for site in originals]
    seen = watch({site.path: site.module for site in originals})
    call(watched[0], *arguments)
    require_own_kernels(originals, before)
    expected = call(nnx.clone(model), *arguments)  # a model may ask for the type of its layers
    found = call(nnx.clone(attention), *arguments)
    form: dict[str, Any] = {"form": "exact" if exact else "limit", "head_dim": head_dim}
    form |= {"uniform_weight": leak} if exact else {}
    layers = []
    for site in originals:
        layer, calls = made[site.path], seen.get(id(site.module), [])
        differences = [layer(inputs) - outputs for inputs, outputs in calls]
        bounds = [convolution_bound(site.module, inputs, **form) for inputs, _ in calls]
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
    difference, most, same = output_difference(expected, found) or (None, None, None)
    # Cloned in the trace, as a model in training changes its statistics and random streams there.
    left = remaining_convolutions(lambda *args: call(nnx.clone(attention), *args), *arguments)
    return Converted(attention, Report(tuple(layers), difference, most, same, left))


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
    require_own_parameters(taken, root)
    for path, node in nnx.iter_graph(root):
        if isinstance(node, nnx.WeightNorm | nnx.SpectralNorm):
            inside = ".".join(map(str, (*path[1:], "")))
            refuse_computed([site for site in taken if site.path.startswith(inside)], node)
    return taken


def refuse_computed(sites: Sequence["Site"], wrapper: Any = None) -> None:
    """Refuse layers whose kernel is computed from other parameters at each call.

    Raises:
        ValueError: If there are any.
    """
    for site in sites:
        name = "the model" if wrapper is None else f"nnx.{type(wrapper).__name__}"
        raise ValueError(
            f"{site.path or 'the model'}: {name} computes its kernel at each call, but expected "
            "an nnx.Conv that keeps its kernel: attention in its place would not follow. Call the "
            "model once and put the nnx.Conv itself (layer_instance) in the wrapper's place, or "
            "leave it out with where="
        )


def require_own_kernels(sites: Sequence["Site"], before: Sequence[Array]) -> None:
    """Refuse layers whose kernel another value than before a call of the model.

    Raises:
        ValueError: As described above.
    """
    after = [site.module.kernel[...] for site in sites]
    if not is_traced([before, after]):
        pairs = zip(sites, map(np.asarray, before), map(np.asarray, after), strict=True)
        refuse_computed([site for site, old, new in pairs if old.tobytes() != new.tobytes()])


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
    """Unpacks as `model, report`.

    Attributes:
        model: With convolutions.
        report: How far it is from the model with attention.
    """

    model: Any
    report: Report


def to_convolution(
    model: Any, example: Any = None, *, call: Callable[..., Any] | None = None
) -> Recovered:
    """A copy of a model with the nearest `nnx.Conv` in place of every `AttentionConv`.

    Args:
        model: From `to_attention`, trained or not.
        example, call: As for `to_attention`. With an example each layer is compared on its own
            inputs there, and the outputs of the two models are compared; without one each layer is
            compared on a random image, and the outputs are not.

    Raises:
        ValueError: For a model without any.

    >>> import jax.numpy as jnp
    >>> net = nnx.Sequential(nnx.Conv(1, 2, (3, 3), strides=2, rngs=nnx.Rngs(0)), nnx.relu)
    >>> image = jnp.ones((1, 8, 8, 1))
    >>> back, report = to_convolution(to_attention(net, image).model, image)
    >>> report.difference < 1e-6, report.layers[0].distance < 1e-6
    (True, True)
    """
    require_module(model)
    root, watched = nnx.List([nnx.clone(model)]), nnx.List([nnx.clone(model)])
    found = sites(root, (AttentionConv,))
    if not found:
        raise ValueError(f"model={type(model).__name__} holds no AttentionConv")
    call = call or (lambda model, *given: model(*given))
    arguments = example if type(example) is tuple else (example,)
    expected, calls = None, {}
    originals = {site.path: site.module for site in sites(watched, (AttentionConv,))}
    if example is not None:
        calls = watch(originals, AttentionConv)
        call(watched[0], *arguments)
        expected = call(nnx.clone(model), *arguments)
    made, layers = {}, []
    for site in found:
        layer = site.module
        inputs = [x for x, _ in calls.get(id(originals[site.path]), [])]
        if id(layer) not in made:
            sides = inputs[0].shape[-1 - len(layer.strides) : -1] if inputs else None
            made[id(layer)] = layer.to_conv(sides)
        conv, distance, uniform = made[id(layer)]
        if inputs:
            distance = float(np.max([relative_difference(layer, conv, x) for x in inputs]))
        layers.append(RecoveredLayer(site.path, distance, uniform))
        site.put(conv)
    if example is None:
        return Recovered(root[0], Report(tuple(layers)))
    compared = output_difference(expected, call(nnx.clone(root[0]), *arguments))
    return Recovered(root[0], Report(tuple(layers), *(compared or ())))


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
    reached = {id(node): path for path, node in nnx.iter_graph(root) if isinstance(node, kinds)}
    found = [
        site
        for site in held_in(root)
        if isinstance(site.module, kinds) and isinstance(site.holder, nnx.Pytree | list | dict)
    ]
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


def held_in(root: nnx.List) -> Iterator[Site]:
    """All that `root[0]` and what it holds have as attributes, or in pytrees of any kind."""
    for path, node in nnx.iter_graph(root):
        held: Iterable[tuple[Any, Any]] = ()
        if isinstance(node, nnx.Pytree):
            held = vars(node).items()
        elif isinstance(node, list):
            held = enumerate(node)
        elif isinstance(node, dict):
            held = node.items()
        elif not isinstance(node, nnx.Variable):
            pairs = jax.tree.leaves_with_path(
                node, is_leaf=lambda child, node=node: child is not node
            )
            held = [(jax.tree_util.keystr(key, simple=True), child) for key, child in pairs if key]
        for key, child in held:
            yield Site(".".join(str(part) for part in (*path, key)[1:]), node, key, child)


def require_own_parameters(found: Sequence[Site], root: nnx.List) -> None:
    """Refuse parameters that anything else in the model holds: each would get maps of its own.

    Raises:
        ValueError: As described above.
    """
    names = ("kernel", "bias")
    owners = {id(getattr(site.module, name)): (site, name) for site in found for name in names}
    for held in held_in(root):
        site, name = owners.get(id(held.module), (held, ""))
        if held.module is not None and held.holder is not site.module and name:
            raise ValueError(
                f"{held.path} is also {site.path}.{name}, but expected a parameter of its own: "
                "shared modules stay shared, shared parameters do not"
            )


def watch(modules: dict[str, Any], kind: Any = nnx.Conv) -> dict[int, list[tuple[Array, Array]]]:
    """Layers of a kind, by path, that note their inputs and outputs, by their identity."""
    seen: dict[int, list[tuple[Array, Array]]] = {}
    paths = {id(module): path for path, module in modules.items()}

    class Watched(kind):
        """Notes each call, unless it is traced."""

        def __call__(self, inputs: Array, *given: Any, **named: Any) -> Array:
            if inputs.shape[-1] != getattr(self, "in_features", inputs.shape[-1]):
                raise ValueError(
                    f"{paths.get(id(self)) or 'the model'}: inputs.shape={inputs.shape}, but "
                    f"expected {self.in_features} channels in the last axis; give an example as "
                    "the model is called with"
                )
            outputs = super().__call__(inputs, *given, **named)
            if not is_traced([inputs, outputs]):
                seen.setdefault(id(self), []).append((inputs, outputs))
            return outputs

    for module in modules.values():
        module.__class__ = Watched
    return seen


def convolution_bound(conv: nnx.Conv, inputs: Array, **options: Any) -> float | None:
    """A bound on the largest |attention - conv(inputs)|, or None where none is derived.

    Args:
        options: As for `convattn.with_attention`.
    """
    axes = len(conv.kernel_size)
    images = inputs.reshape(-1, *inputs.shape[inputs.ndim - axes - 1 :])
    (layer,) = attention_of(conv, images, **options).report.layers
    return layer.bound if isinstance(layer, LayerReport) else None
