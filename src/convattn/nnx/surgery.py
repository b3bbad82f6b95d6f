"""Every `nnx.Conv` of a model as attention, and back.

A model is converted in a copy. What a module does with its convolutions is not looked at, so any
model will do whose convolutions are `nnx.Conv`s that it holds as attributes, or in lists or
dictionaries. One that is held twice is converted once and stays shared.

The difference on the example is measured; for each layer there is also a bound on it, derived from
the layer's own inputs (`convattn.networks.transformation.local_error`).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array

from convattn.networks.transformation.attention_of import attention_of
from convattn.networks.transformation.contents import remaining_convolutions
from convattn.networks.transformation.report import (
    LayerReport,
    Measured,
    RecoveredLayer,
    Report,
    largest,
    largest_output,
    output_difference,
    reported,
)
from convattn.nnx.attention_conv import AttentionConv, relative_difference
from convattn.nnx.foreign import require_module
from convattn.nnx.watching import Observed, observed, rest_is_same
from convattn.operators.arrays import is_traced

GOLDEN = (5**0.5 - 1) / 2  # its multiples are spread over the unit interval


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
    form: str = "exact",
    uniform_weight: float = 0.5,
    head_dim: int | None = None,
) -> Converted:
    """A copy of a model with attention in place of its convolutions, and how it compares.

    Args:
        model: Any `nnx.Module`; its mode, training or evaluation, is kept, and so is its state.
        example: What the model is called with: an array, or a tuple of arguments.
        call: What calls the model, `call(model, *arguments)`, where it takes keyword arguments.
        where: Which convolutions, by path and module; None takes all that stand in modules, lists
            and dictionaries. One that a function holds cannot be seen: it is counted as left.
        form, uniform_weight, head_dim: As for `AttentionConv`.

    Raises:
        ValueError: For a model without convolutions, for parameters of theirs that anything else in
            the model holds, and for
            a layer that cannot be converted, naming it: transposed and 3-D ones, subclasses of
            `nnx.Conv`, those with input_dilation, a mask or a convolution
            of their own, those whose kernel a wrapper computes (`nnx.WeightNorm`,
            `nnx.SpectralNorm`), and outputs larger than the image; leave such a layer out with
            `where`. For a model of another framework.

    What the report says, it says of the example: attention does not follow kernels that depend on
    an argument or the input, which shows only where they are others than the model holds.

    Under `jax.jit` or `jax.eval_shape` the model is made, and nothing is measured. Compiled parts
    of the model are run step by step once more, to see the inputs of their layers.

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
    call = call or (lambda model, *args: model(*args))

    def run(model: Any) -> Any:
        return call(model, *arguments)

    options: dict[str, Any] = {"form": form, "head_dim": head_dim}
    options |= {"uniform_weight": uniform_weight} if form == "exact" else {}
    originals = chosen(nnx.List([nnx.clone(model)]), where)
    attention, attention_layers = replaced(model, where, **options)
    convs_of = partial(_modules_at, nnx.Conv, attention_layers)
    observation = observed(model, convs_of, run)
    _refuse_other_kernels({site.path: site.module for site in originals}, observation)
    _require_stored_kernels(model, convs_of, run)
    expected = run(nnx.clone(model))  # a model may ask for the type of its layers
    result = run(nnx.clone(attention))
    layers = []
    for path in (site.path for site in originals):
        layer, measured = attention_layers[path], []
        for conv, inputs, outputs in observation.calls(path) or ():
            is_held = conv is observation.watch.modules[path]
            own = layer if is_held else AttentionConv.from_conv(conv, **options)
            bound = _convolution_bound(conv, inputs, **options)
            off, size = largest([own(inputs) - outputs]), largest_output(inputs, outputs)
            measured.append(Measured(off, bound, size))
        layers.append(reported(path, layer.heads, layer.feature_group_count, measured))
    difference, most, same = output_difference(expected, result) or (None, None, None)
    layers_of = partial(_modules_at, AttentionConv, attention_layers)
    rest = rest_is_same(model, expected, attention, layers_of, observation, run)
    # Cloned in the trace, as a model in training changes its statistics and random streams there.
    left = remaining_convolutions(lambda *args: call(nnx.clone(attention), *args), *arguments)
    report = Report(tuple(layers), difference, most, same, left, rest_is_same=rest)
    return Converted(attention, report)


def chosen(root: nnx.List, where: Callable[[str, nnx.Conv], bool] | None) -> list["Site"]:
    """The convolutions of `root[0]` that are to be converted.

    Raises:
        ValueError: If there are none, and as `_require_own_parameters` does.
    """
    sites = _sites(root, (nnx.Conv, nnx.ConvTranspose))
    taken = [site for site in sites if where is None or where(site.path, site.module)]
    if not taken:
        raise ValueError(
            f"model={type(root[0]).__name__} holds no nnx.Conv"
            + (
                " that `where` takes"
                if where
                else "; it may call lax.conv, or be converted already"
            )
        )
    _require_own_parameters(taken, root)
    for site in sites:
        other = next((other_site for other_site in taken if other_site.module is site.module), site)
        if other is not site and site not in taken:
            raise ValueError(
                f"{site.path} and {other.path} are one module, of which `where` takes one path, "
                "but expected both or none: attention has weights of its own"
            )
    for path, node in nnx.iter_graph(root):
        if isinstance(node, nnx.WeightNorm | nnx.SpectralNorm):
            inside = ".".join(map(str, (*path[1:], "")))
            _refuse_computed(
                [other_site.path for other_site in taken if other_site.path.startswith(inside)],
                node,
            )
    return taken


def _refuse_computed(paths: Iterable[str], wrapper: Any = None) -> None:
    """Refuse layers whose kernel is computed from other parameters at each call."""
    for path in paths:
        name = "the model" if wrapper is None else f"nnx.{type(wrapper).__name__}"
        raise ValueError(
            f"{path or 'the model'}: {name} computes its kernel at each call, but expected "
            "an nnx.Conv that keeps its kernel: attention in its place would not follow. Call the "
            "model once and put the nnx.Conv itself (layer_instance) in the wrapper's place, or "
            "leave it out with where="
        )


def _require_stored_kernels(
    model: Any, convs_of: Callable[[Any], Mapping[str, Any]], run: Callable[[Any], Any]
) -> None:
    """Refuse layers that are called with another kernel than the model holds.

    All variables of a copy but its random streams are moved first, up and down, or up alone,
    or without the integers and booleans, where the model does not run so. So a kernel that is
    computed from others shows also where an earlier call has left it in its place, where a copy of
    the layer is called, and where kernels are projected that were in their set before. Inside
    `jax.checkpoint` and `jax.vmap` kernels are not seen, and the report then judges nothing.

    Args:
        convs_of: The convolutions of a copy, by path.
        run: Calls a model.
    """
    for down, integers in product((True, False), repeat=2):
        moved = nnx.clone(model)
        state = nnx.state(moved, nnx.Not(nnx.RngState))
        if is_traced([state]):
            return
        nnx.update(moved, jax.tree.map(partial(_moved, down=down, integers=integers), state))
        before = {path: nnx.clone(conv) for path, conv in convs_of(nnx.List([moved])).items()}
        try:
            observation = observed(moved, convs_of, run)
        except Exception:  # the model's own: it need not run with any parameters
            continue
        _refuse_other_kernels(before, observation)
        return


def _refuse_other_kernels(convs: Mapping[str, Any], observation: Observed) -> None:
    """Refuse layers whose kernel changed in a run, or that were called with another.

    Args:
        convs: As they were before the run, by path.
        observation: Of the run.
    """
    for path, conv in convs.items():
        called = (call.layer for call in observation.calls(path) or ())
        kernels = [layer.kernel[...] for layer in (conv, observation.watch.modules[path], *called)]
        if is_traced(kernels):
            continue
        kernel, *others = map(np.asarray, kernels)
        if not all(_is_kernel_or_step(other, kernel) for other in others):
            _refuse_computed([path])


def _moved(parameter: Array, down: bool, integers: bool) -> Array:
    """Another value of the same kind: up to two more, or as much less in every other place.

    The steps differ from place to place, so that no mean, sum or rounding of them stays the same.

    Args:
        parameter: Of any dtype; what is true becomes false.
        down: Whether some are one less; of integers none are.
        integers: Whether integers and booleans are moved, too.
    """
    if not jnp.issubdtype(parameter.dtype, jnp.inexact):
        is_bool = parameter.dtype == bool
        is_number = is_bool or jnp.issubdtype(parameter.dtype, jnp.integer)
        return (
            parameter if not (integers and is_number) else ~parameter if is_bool else parameter + 1
        )
    indices = np.arange(parameter.size)
    steps = (1 + indices * GOLDEN % 1) * (1 - 2 * (indices % 2 * down))
    return parameter + jnp.asarray(steps.reshape(parameter.shape), parameter.dtype)


def _is_kernel_or_step(called: np.ndarray, kernel: np.ndarray) -> bool:
    """Whether a layer was called with the stored kernel, or with one step of a stack."""
    same_kind = called.dtype == kernel.dtype and called.ndim <= kernel.ndim
    if not same_kind or called.shape != kernel.shape[kernel.ndim - called.ndim :]:
        return False
    steps = kernel.reshape(-1, called.size).view(np.uint8)
    return bool((steps == called.reshape(1, -1).view(np.uint8)).all(axis=1).any())


def replaced(
    model: Any, where: Callable[[str, nnx.Conv], bool] | None = None, **options: Any
) -> tuple[Any, dict[str, AttentionConv]]:
    """A copy of a model with attention in place of its convolutions, and the layers by path.

    Args:
        options: form, uniform_weight and head_dim.

    Raises:
        ValueError: As `to_attention` does.
    """
    root = nnx.List([nnx.clone(model)])
    converted: dict[int, AttentionConv] = {}
    paths = {}
    for site in chosen(root, where):
        if id(site.module) not in converted:
            try:
                converted[id(site.module)] = AttentionConv.from_conv(site.module, **options)
            except ValueError as error:
                raise ValueError(f"{site.path or 'the model'}: {error}") from error
        paths[site.path] = converted[id(site.module)]
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
            inputs there and on a random image of another size, and the outputs of the two models
            are compared, at the size of the example; without one, and where its inputs could not be
            seen or are zeros, a layer is compared on the random image alone, which the report says.

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
    root = nnx.List([nnx.clone(model)])
    sites = _sites(root, (AttentionConv,))
    if not sites:
        raise ValueError(f"model={type(model).__name__} holds no AttentionConv")
    call = call or (lambda model, *args: model(*args))
    arguments = example if type(example) is tuple else (example,)

    def run(model: Any) -> Any:
        return call(model, *arguments)

    observation = expected = None
    if example is not None:
        layers_of = partial(_modules_at, AttentionConv, [site.path for site in sites])
        observation = observed(model, layers_of, run)
        expected = run(nnx.clone(model))
    conversions, layers = {}, []
    for site in sites:
        layer = site.module
        calls = (None if observation is None else observation.calls(site.path)) or []
        sides = calls[0].inputs.shape[-1 - len(layer.strides) : -1] if calls else None
        if id(layer) not in conversions:
            conversions[id(layer)] = layer.to_conv(sides)
        conv, elsewhere, uniform, other = conversions[id(layer)]
        distances = []
        for own, inputs, _ in calls:
            if largest([inputs]) == 0:
                continue
            is_held = observation is not None and own is observation.watch.modules[site.path]
            near = conv if is_held else own.to_conv(sides).conv
            distances.append(relative_difference(own, near, inputs))
        distance = float(np.max(distances)) if distances else elsewhere
        layers.append(
            RecoveredLayer(site.path, distance, uniform, bool(distances), elsewhere, other)
        )
        site.put(conv)
    if example is None:
        return Recovered(root[0], Report(tuple(layers)))
    compared = output_difference(expected, run(nnx.clone(root[0])))
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


def _sites(root: nnx.List, kinds: tuple[type, ...]) -> list[Site]:
    """Every place in `root[0]` that holds a module of these kinds; a shared one has several."""
    reached = {id(node): path for path, node in nnx.iter_graph(root) if isinstance(node, kinds)}
    sites = [
        site
        for site in _all_nodes(root)
        if isinstance(site.module, kinds) and isinstance(site.holder, nnx.Pytree | list | dict)
    ]
    for site in sites:
        reached.pop(id(site.module), None)
    for path in reached.values():
        raise ValueError(
            f"{'.'.join(map(str, path[1:]))} is held by something else than a module, a list or a "
            "dictionary, and cannot be replaced; hold it in an nnx.List"
        )

    def natural(site: Site) -> list[str]:
        return [part.zfill(6) if part.isdigit() else part for part in site.path.split(".")]

    return sorted(sites, key=natural)


def _modules_at(kind: type, paths: Collection[str], root: nnx.List) -> dict[str, Any]:
    """The modules of a kind that stand at these paths, by path."""
    return {site.path: site.module for site in _sites(root, (kind,)) if site.path in paths}


def _all_nodes(root: nnx.List) -> Iterator[Site]:
    """All that `root[0]` and what it holds have as attributes, or in pytrees of any kind."""
    for path, node in nnx.iter_graph(root):
        children: Iterable[tuple[Any, Any]] = ()
        if isinstance(node, nnx.Pytree):
            children = vars(node).items()
        elif isinstance(node, list):
            children = enumerate(node)
        elif isinstance(node, dict):
            children = node.items()
        elif not isinstance(node, nnx.Variable):
            pairs = jax.tree.leaves_with_path(
                node, is_leaf=lambda child, node=node: child is not node
            )
            children = [
                (jax.tree_util.keystr(key, simple=True), child) for key, child in pairs if key
            ]
        for key, child in children:
            yield Site(".".join(str(part) for part in (*path, key)[1:]), node, key, child)


def _require_own_parameters(sites: Sequence[Site], root: nnx.List) -> None:
    """Refuse parameters that anything else in the model holds: each would get maps of its own."""
    names = ("kernel", "bias")
    owners = {id(getattr(site.module, name)): (site, name) for site in sites for name in names}
    for other in _all_nodes(root):
        site, name = owners.get(id(other.module), (other, ""))
        if other.module is not None and other.holder is not site.module and name:
            raise ValueError(
                f"{other.path} is also {site.path}.{name}, but expected a parameter of its own: "
                "shared modules stay shared, shared parameters do not"
            )


def _convolution_bound(conv: nnx.Conv, inputs: Array, **options: Any) -> float | None:
    """A bound on the largest |attention - conv(inputs)|, or None where none is derived.

    None is for kernels below float32: the maps are stored as they are, whatever dtype computes.

    Args:
        options: As for `convattn.with_attention`.
    """
    if jnp.finfo(conv.kernel[...].dtype).bits < 32:
        return None
    axes = len(conv.kernel_size)
    images = inputs.reshape(-1, *inputs.shape[inputs.ndim - axes - 1 :])
    (layer,) = attention_of(conv, images, **options).report.layers
    return layer.bound if isinstance(layer, LayerReport) else None
