"""Every convolution of a model of PyTorch as attention, in a copy.

A copy is converted; what a module does with its convolutions is not looked at, so any model will do
that holds them as modules. One that is held twice is converted once and stays shared.

**The bound of a layer.** With u the unit roundoff of the dtype, N the keys, ε the uniform weight,
L = log N + |log(1/ε - 1)| + 1, n the products that an entry of the convolution sums, H the heads,
and the majorants

    G = |W| * |x| + |b|,    E = 2ε/(1 - ε)·mean(|x|)·Σ_δ|W_δ|,

the convolution is off by at most γ_(n+1) G, in whatever order it is summed. The attention is a sum
of products X_k·A·W with relative errors in each factor. The score log(1 + N(1/ε - 1)) is off by at
most 4uL, its exponential so by (4L + 4)u of itself, and the normaliser by N roundings more. The
weight of a tap beside the uniform part, (e^M - 1)/Z, is at least half of e^M/Z if N(1/ε - 1) ≥ 1,
so that its relative error is at most doubled. The maps are rounded once, and a sum over N keys and
n·H products as often. In absolute value the terms add up to G + E at most. So the attention is off
by γ_m (G + E) with m = 2N + (n + 2)·H + 16L + 64. All this holds where products are of the dtype
itself: TF32 and Winograd's algorithm, which a GPU may take, are outside of it. Subnormal numbers
add less than 4m·tiny(1 + max|W|)(1 + max|x|). The majorants are computed in float32 and inflated
by their own error.
"""

import copy
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.modules import conv as convolutions
from torch.utils._pytree import tree_leaves, tree_map_only

from convattn.networks.transformation.attention import KEPT, NOT_CHOSEN
from convattn.networks.transformation.report import (
    Measured,
    Report,
    largest,
    largest_output,
    output_difference,
    reported,
)
from convattn.operators.roundoff import gamma_or_infinite
from convattn.torch.attention_conv import AttentionConv
from convattn.torch.functions import plain_module
from convattn.torch.plain_convolution import CONVOLUTIONS, reason_to_keep, require_own_weight
from convattn.torch.remaining import convolving_functions

ROUNDOFF = {torch.float32: 2.0**-24, torch.float64: 2.0**-53}


class Converted(NamedTuple):
    """Unpacks as `model, report`."""

    model: Any
    report: Report


class Call(NamedTuple):
    """One call of a convolution: how attention compares, and what the convolution gives."""

    measured: Measured
    output: Tensor


def to_attention(
    model: Any,
    example: Any,
    *,
    call: Callable[..., Any] | None = None,
    where: Callable[[str, Any], Any] | None = None,
    uniform_weight: float = 0.5,
    pointwise: str = "attention",
    backend: str = "shift",
) -> Converted:
    """A copy of a model with attention in place of its convolutions, and how it compares.

    Args:
        model: Any `torch.nn.Module`; it is left as it is, and its copy has its mode, device, dtype
            and shared modules.
        example: What the model is called with: a tensor, or a tuple of arguments.
        call: What calls the model, `call(model, *arguments)`, where it takes keyword arguments.
        where: Which convolutions, by path and module; None takes all.
        uniform_weight: ε in (0, 1), the weight that each head lays on all tokens alike.
        pointwise: `"attention"` makes two heads of a 1 × 1 convolution, `"keep"` leaves it.
        backend: `"shift"`, `"dense"` or `"flex"`, as for `AttentionConv`, which has the formulas.

    Returns:
        The model, whose `AttentionConv`s run and train without JAX; and the report: for each layer
        its heads, the largest difference on the same inputs and a bound on it, the difference of
        the outputs, and which convolutions are left, and why: those of three axes, of complex
        numbers, of a class with a `forward` of its own, and of functions, each as often as it runs.
        One that a function computes in a thread of Python's, outside of all modules, is not seen,
        and a model whose weights follow an argument or its input, and are those that it holds on
        the example, is not told from one that keeps them.

    Raises:
        ValueError: For a model without convolutions; for a layer with hooks, whose weight is
            computed at each call (weight norm, spectral norm, pruning, parametrisations), or that
            shares parameters with another module, naming it and what to do.

    Source: S.finite, S.pad, S.network of this project's ledger.

    >>> net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3, stride=2, padding=1), torch.nn.ReLU())
    >>> attention, report = to_attention(net, torch.ones(1, 1, 8, 8))
    >>> report.layers[0].path, report.layers[0].heads, report.passed, report.difference < 1e-6
    ('0', 10, True, True)
    """
    model = plain_module(model, "model")
    if pointwise not in ("attention", "keep"):
        raise ValueError(f"pointwise={pointwise!r}, but expected one of 'attention', 'keep'")
    if where is not None and not callable(where):
        raise ValueError(f"where={where!r}, but expected a function of path and module")
    if isinstance(example, list):
        raise ValueError("example is a list, but expected a tensor, or a tuple of arguments")
    chosen, left = _chosen(model, where, pointwise)
    options = {"uniform_weight": uniform_weight, "backend": backend}
    original = _copied(model)
    attention, layers = _replaced(original, chosen, options)
    arguments = example if type(example) is tuple else (example,)
    own_call = call or (lambda model, *args: model(*args))

    def run(model: torch.nn.Module) -> Any:  # on copies, which it may write to
        with _seeded():
            return own_call(model, *tree_map_only(Tensor, torch.clone, arguments))

    _require_stored_weights(original, chosen, run)
    measured: dict[str, list[Call]] = {path: [] for path in chosen}
    with torch.no_grad():
        with _compared(original, layers, uniform_weight, measured):
            expected = run(original)
        outputs = run(_copied(attention) if _is_training(model) else attention)
        # Counted in a run of its own: FlexAttention does not run while operators are watched.
        for module in (watched := _copied(attention)).modules():
            if isinstance(module, AttentionConv):
                module.backend = "shift"
        _replay(watched, measured)
        with convolving_functions(watched, left) as functions:
            replayed = run(watched)
    lines = []
    for path, layer in layers.items():
        calls = [call.measured for call in measured[path]]
        lines.append(reported(path or type(model).__name__, layer.heads, layer.groups, calls))
    difference, most, same = output_difference(_arrays(expected), _arrays(outputs)) or (None,) * 3
    everything_left = (*_lines(left), *functions)
    replay = output_difference(_arrays(expected), _arrays(replayed))
    rest = replay is not None and replay[0] == 0
    report = Report(tuple(lines), difference, most, same, everything_left, rest_is_same=rest)
    return Converted(attention, report)


def _lines(left: dict[str, str]) -> list[str]:
    return [f"{path or 'the model'}: {reason}" for path, reason in left.items()]


def _chosen(
    model: torch.nn.Module, where: Callable[[str, Any], Any] | None, pointwise: str
) -> tuple[dict[str, Any], dict[str, str]]:
    """The convolutions to convert, by path; and why the others are left."""
    chosen: dict[str, Any] = {}
    left: dict[str, str] = {}
    for path, module in model.named_modules(remove_duplicate=False):
        if isinstance(module, convolutions._ConvNd):
            reason = reason_to_keep(module)
            if where is not None and not where(path, module):
                reason = NOT_CHOSEN
            elif pointwise == "keep" and math.prod(module.kernel_size) == 1:
                reason = KEPT
            if reason is None:
                require_own_weight(path, module)
                chosen[path] = module
            else:
                left[path] = reason
    if not chosen:
        raise ValueError(
            f"model={type(model).__name__} holds no convolution that becomes attention"
            + "".join(f"; {line}" for line in _lines(left))
        )
    for path, module in model.named_modules(remove_duplicate=False):
        other = next((name for name, conv in chosen.items() if conv is module), path)
        if other != path and left.get(path) == NOT_CHOSEN:
            raise ValueError(
                f"{path} and {other} are one module, of which `where` takes one path, but expected "
                "both or none: attention has weights of its own"
            )
    owners = {_place(p): path for path, conv in chosen.items() for p in conv.parameters()}
    for path, module in model.named_modules():
        for name, parameter in module.named_parameters(recurse=False):
            path_of_owner = owners.get(_place(parameter), path)
            owner = chosen.get(path_of_owner, module)
            if owner is not module:
                raise ValueError(
                    f"{path}.{name} is also a parameter of {path_of_owner}, but expected one of "
                    "its own: shared modules stay shared, shared parameters do not; leave both "
                    "out with where="
                )
    return chosen, left


def _place(parameter: Tensor) -> tuple[int, int]:
    """Where the numbers of a parameter stand, which two may share; itself where that is nowhere."""
    if parameter.is_meta or not parameter.numel():
        return id(parameter), -1
    return parameter.data_ptr(), parameter.numel()


def _require_stored_weights(
    model: torch.nn.Module, chosen: Mapping[str, Any], run: Callable[[torch.nn.Module], Any]
) -> None:
    """Refuse layers that are called with another weight than the model holds.

    All parameters and buffers of a copy are moved first, up and down, or up alone, or
    without the integers and booleans, where the model does not run so. So a weight that is computed
    from others shows also where an earlier call has left it in its place, a projection of the
    weights where they were its own, and what a run leaves for the next one.
    """
    for down, integers in itertools.product((True, False), repeat=2):
        if (computed := _computed_weights(model, chosen, run, down, integers)) is None:
            continue
        for path in computed:
            raise ValueError(
                f"{path or 'the model'}: the model computes its weight at each call, but expected "
                "a convolution that keeps its weight: attention in its place would not follow. Put "
                "the weight in its place once and take out what computes it, or leave it out with "
                "where="
            )
        return


def _computed_weights(
    model: torch.nn.Module,
    chosen: Mapping[str, Any],
    run: Callable[[torch.nn.Module], Any],
    down: bool,
    integers: bool,
) -> list[str] | None:
    """The layers whose weight in a run is not the moved one; None where the model does not run."""
    moved, computed = _copied(model), list[str]()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for tensor in (*moved.parameters(), *moved.buffers()):
            if tensor.is_floating_point():  # no mean, sum or rounding of the steps stays the same
                signs = torch.randint(0, 2, tensor.shape, generator=generator) * 2 - 1
                steps = 1 + torch.rand(tensor.shape, generator=generator)
                tensor.add_((steps * signs if down else steps).to(tensor))
            elif integers:
                tensor.logical_not_() if tensor.dtype == torch.bool else tensor.add_(1)

    weights = {path: moved.get_submodule(path).weight.detach().clone() for path in chosen}

    def watch(path: str, conv: Any) -> Callable[..., None]:
        def compare(*_: Any) -> None:
            if not torch.equal(conv.weight, weights[path]):
                computed.append(path)

        return compare

    compared = {path: watch(path, moved.get_submodule(path)) for path in chosen}
    for path, compare in compared.items():
        moved.get_submodule(path).register_forward_pre_hook(compare)
    try:
        with torch.no_grad():
            run(moved)
    except Exception:  # the model's own: it need not run with any parameters
        return None
    for compare in compared.values():  # and what a run leaves for the next one
        compare()
    return computed


def _copied(model: torch.nn.Module) -> torch.nn.Module:
    try:
        return copy.deepcopy(model)
    except RuntimeError as error:
        raise ValueError(
            f"model={type(model).__name__} cannot be copied, as a module keeps a weight that it "
            "computed (torch.nn.utils.weight_norm, spectral_norm or pruning); call the model once "
            "under torch.no_grad() before to_attention, or remove them"
        ) from error


def _replaced(
    original: torch.nn.Module, paths: Sequence[str] | dict[str, Any], options: dict[str, Any]
) -> tuple[torch.nn.Module, dict[str, AttentionConv]]:
    """A copy with attention at these paths, and its layers."""
    attention = _copied(original)
    layers: dict[str, AttentionConv] = {}
    converted: dict[int, AttentionConv] = {}
    modules = {path: attention.get_submodule(path) for path in paths}
    for path, module in modules.items():
        if id(module) not in converted:
            converted[id(module)] = AttentionConv.from_conv(module, **options)
            converted[id(module)].train(module.training)
        layers[path] = converted[id(module)]
        if path:
            above, _, name = path.rpartition(".")
            attention.get_submodule(above)._modules[name] = layers[path]
    return layers.get("", attention), layers


@contextmanager
def _compared(
    model: torch.nn.Module,
    layers: dict[str, AttentionConv],
    uniform_weight: float,
    measured: dict[str, list[Call]],
) -> Iterator[None]:
    """Each convolution of the model is compared with its layer at every call."""
    handles = []
    paths: dict[int, list[str]] = {}
    for path in layers:
        paths.setdefault(id(model.get_submodule(path)), []).append(path)

    def compare(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Tensor) -> None:
        names = paths[id(module)]
        layer = layers[names[0]]
        result = layer(*args, **kwargs)
        inputs = args[0] if args else next(iter(kwargs.values()))
        difference = largest([_array(result) - _array(output)])
        most = largest_output(_array(inputs), _array(output))
        size = (args[1] if len(args) > 1 else None) or kwargs.get("output_size")
        bound = _bound(module, layer, inputs, size, uniform_weight)
        copied = output.clone()  # what comes next may write into it
        for name in names:
            measured[name].append(Call(Measured(difference, bound, most), copied))

    for names in paths.values():
        module = model.get_submodule(names[0])
        handles.append(module.register_forward_hook(compare, with_kwargs=True))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _replay(attention: torch.nn.Module, measured: dict[str, list[Call]]) -> None:
    """Layers that give the outputs of their convolutions, call by call, while there are any."""
    modules = {attention.get_submodule(path): calls for path, calls in measured.items()}
    for module, calls in modules.items():
        outputs = iter([call.output for call in calls])
        module.register_forward_hook(lambda *_, outputs=outputs: next(outputs, None))


def _bound(
    conv: Any, layer: AttentionConv, inputs: Tensor, size: Any, uniform_weight: float
) -> float | None:
    """The bound above; None below float32."""
    if inputs.dtype != conv.weight.dtype or inputs.dtype not in ROUNDOFF or not inputs.numel():
        return None
    roundoff, epsilon = ROUNDOFF[inputs.dtype], uniform_weight
    images = inputs if inputs.ndim == layer.axes + 2 else inputs[None]
    magnitudes = layer.padded(images.detach().cpu().float().abs(), size)
    weight = conv.weight.detach().cpu().float().abs()
    bias = None if conv.bias is None else conv.bias.detach().cpu().float().abs()
    if conv.transposed:
        weight = weight.unflatten(0, (conv.groups, -1)).transpose(1, 2).flatten(0, 1)
        weight = weight.flip(*range(2, weight.ndim))
    options = {"stride": layer.stride, "dilation": layer.dilation, "groups": layer.groups}
    magnitude = CONVOLUTIONS[layer.axes](magnitudes, weight, bias, **options)
    taps = weight.flatten(2).sum(-1).unflatten(0, (layer.groups, -1))  # [groups, out, in]
    mean = magnitudes.flatten(2).mean(-1).unflatten(1, (layer.groups, -1))
    everywhere = torch.einsum("bgi,goi->bgo", mean, taps).flatten(1)
    everywhere = everywhere.view(*everywhere.shape, *[1] * layer.axes)
    spread = 2 * epsilon / (1 - epsilon)
    keys, products = math.prod(magnitudes.shape[2:]), math.prod(weight.shape[1:])
    if keys * (1 / epsilon - 1) < 1:
        return None
    score = math.log(keys) + abs(math.log(1 / epsilon - 1)) + 1
    steps = 2 * keys + (products + 2) * layer.heads + 16 * score + 64
    tallest = (1 + float(weight.max())) * (1 + float(magnitudes.max()))
    inflation = 1 + 2 * gamma_or_infinite(keys + products + 16, ROUNDOFF[torch.float32])
    majorant = float((magnitude + spread * everywhere).max()) * inflation
    floor = 4 * steps * torch.finfo(torch.float32).tiny * tallest
    relative = gamma_or_infinite(steps, roundoff) + gamma_or_infinite(products + 1, roundoff)
    return relative * majorant + floor


@contextmanager
def _seeded() -> Iterator[None]:
    """Both models draw the same random numbers, and the caller's go on as they were."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def _is_training(model: torch.nn.Module) -> bool:
    return any(module.training for module in model.modules())


def _arrays(outputs: Any) -> Any:
    """The tensors of what a model gives; as it is, if there are none."""
    return [_array(x) for x in tree_leaves(outputs) if isinstance(x, Tensor)] or outputs


def _array(tensor: Tensor) -> np.ndarray:
    """On the host, of 64 bits."""
    kind = torch.complex128 if tensor.is_complex() else torch.float64
    array: np.ndarray = tensor.detach().cpu().to(kind).numpy()
    return array
