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
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.modules import conv as convolutions
from torch.nn.utils import parametrize
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from convattn.networks.transformation.attention import KEPT, NOT_CHOSEN
from convattn.networks.transformation.report import LayerReport, Report
from convattn.torch.attention_conv import (
    CONVOLUTIONS,
    AttentionConv,
    has_xla_padding,
)
from convattn.torch.functions import plain_module

ROUNDOFF = {torch.float32: 2.0**-24, torch.float64: 2.0**-53}
PLAIN = (
    convolutions.Conv1d,
    convolutions.Conv2d,
    convolutions.ConvTranspose1d,
    convolutions.ConvTranspose2d,
)


class Converted(NamedTuple):
    """Unpacks as `model, report`."""

    model: Any
    report: Report


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
        numbers, of a class with a `forward` of its own, and of functions.

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
    call = call or (lambda model, *given: model(*given))
    measured: dict[str, list[tuple[float, float | None]]] = {path: [] for path in chosen}
    with torch.no_grad():
        with _seeded(), _compared(original, layers, uniform_weight, measured):
            expected = call(original, *arguments)
        run = _copied(attention) if _is_training(model) else attention
        with _seeded():
            outputs = call(run, *arguments)
        # Counted in a run of its own: FlexAttention does not run while operators are watched.
        for module in (watched := _copied(attention)).modules():
            if isinstance(module, AttentionConv):
                module.backend = "shift"
        with _seeded(), _counted(watched, left) as functions:
            call(watched, *arguments)
    lines = []
    for path, layer in layers.items():
        differences = [difference for difference, _ in measured[path]]
        bounds = [bound for _, bound in measured[path]]
        known = [bound for bound in bounds if bound is not None]
        lines.append(
            LayerReport(
                path or type(model).__name__,
                layer.heads,
                layer.groups,
                float(np.max(differences)) if differences else None,
                max(known) if known and len(known) == len(bounds) else None,
            )
        )
    difference, most, same = _output_difference(expected, outputs)
    everything_left = (*_lines(left), *functions)
    return Converted(attention, Report(tuple(lines), difference, most, same, everything_left))


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
            reason = _reason_to_keep(module)
            if where is not None and not where(path, module):
                reason = NOT_CHOSEN
            elif pointwise == "keep" and math.prod(module.kernel_size) == 1:
                reason = KEPT
            if reason is None:
                _require_own_weight(path, module)
                chosen[path] = module
            else:
                left[path] = reason
    if not chosen:
        raise ValueError(
            f"model={type(model).__name__} holds no convolution that becomes attention"
            + "".join(f"; {line}" for line in _lines(left))
        )
    owners = {id(p): path for path, conv in chosen.items() for p in conv.parameters()}
    for path, module in model.named_modules():
        for name, parameter in module.named_parameters(recurse=False):
            path_of_owner = owners.get(id(parameter), path)
            owner = chosen.get(path_of_owner, module)
            if owner is not module:
                raise ValueError(
                    f"{path}.{name} is also a parameter of {path_of_owner}, but expected one of "
                    "its own: shared modules stay shared, shared parameters do not; leave both "
                    "out with where="
                )
    return chosen, left


def _reason_to_keep(module: Any) -> str | None:
    """Why attention does not express it; None if it does."""
    axes = len(module.kernel_size)
    if axes not in CONVOLUTIONS:
        return f"{axes} axes of space, where attention takes sequences and images"
    if isinstance(module, torch.nn.modules.lazy.LazyModuleMixin):
        return "its weight is not there before the first call; call the model once"
    if not module.weight.is_floating_point():
        return f"{module.weight.dtype}, where attention takes floating point"
    kind = type(module)
    plain = next((base for base in PLAIN if isinstance(module, base)), None)
    if plain is None:
        return f"{kind.__name__} is no convolution of PyTorch's own"
    names = ("forward", "_conv_forward", "__call__")
    own = [name for name in names if getattr(kind, name, None) is not getattr(plain, name, None)]
    if own and not has_xla_padding(module):
        return f"{kind.__name__} has a {own[0]} of its own"
    if "forward" in vars(module):
        return "its forward was replaced"
    return None


def _require_own_weight(path: str, module: Any) -> None:
    """Refuse hooks, and weights that are computed at each call, in which attention has no part.

    Raises:
        ValueError: With what to do.
    """
    where = path or "the model"
    tail = "before to_attention, or leave it out with where="
    if parametrize.is_parametrized(module):
        name = next(iter(module.parametrizations))
        kinds = [type(part).__name__ for part in module.parametrizations[name]]
        raise ValueError(
            f"{where}: its {name} is computed by the parametrisation {', '.join(kinds)}, but "
            "expected a parameter; call torch.nn.utils.parametrize.remove_parametrizations("
            f"layer, {name!r}) {tail}"
        )
    remedies = {
        "WeightNorm": ("weight norm", "remove_weight_norm(layer)"),
        "SpectralNorm": ("spectral norm", "remove_spectral_norm(layer)"),
    }
    for hook in module._forward_pre_hooks.values():
        kind = type(hook).__name__
        if isinstance(hook, torch.nn.utils.prune.BasePruningMethod):
            name = hook._tensor_name
            found = ("pruning", f"prune.remove(layer, {name!r})")
        elif kind in remedies:
            found = remedies[kind]
        else:
            continue
        raise ValueError(
            f"{where}: its weight is computed by {found[0]} at each call, but expected a "
            f"parameter; call torch.nn.utils.{found[1]} {tail}"
        )
    hooks = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
    for attribute in hooks:
        for hook in getattr(module, attribute).values():
            name = getattr(hook, "__qualname__", type(hook).__name__)
            raise ValueError(
                f"{where} has the hook {name}, but expected a convolution without hooks, which "
                f"would not be called; remove it {tail}"
            )


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
    made: dict[int, AttentionConv] = {}
    modules = {path: attention.get_submodule(path) for path in paths}
    for path, module in modules.items():
        if id(module) not in made:
            made[id(module)] = AttentionConv.from_conv(module, **options)
            made[id(module)].train(module.training)
        layers[path] = made[id(module)]
        if path:
            above, _, name = path.rpartition(".")
            attention.get_submodule(above)._modules[name] = layers[path]
    return layers.get("", attention), layers


@contextmanager
def _compared(
    model: torch.nn.Module,
    layers: dict[str, AttentionConv],
    uniform_weight: float,
    measured: dict[str, list[tuple[float, float | None]]],
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
        difference = _largest([(result.double() if _has_double(result) else result) - output])
        inputs = args[0] if args else next(iter(kwargs.values()))
        size = (args[1] if len(args) > 1 else None) or kwargs.get("output_size")
        bound = _bound(module, layer, inputs, size, uniform_weight)
        for name in names:
            measured[name].append((difference, bound))

    for names in paths.values():
        module = model.get_submodule(names[0])
        handles.append(module.register_forward_hook(compare, with_kwargs=True))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


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
    whole = CONVOLUTIONS[layer.axes](magnitudes, weight, bias, **options)
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
    inflation = 1 + 2 * _gamma(keys + products + 16, ROUNDOFF[torch.float32])
    majorant = float((whole + spread * everywhere).max()) * inflation
    floor = 4 * steps * torch.finfo(torch.float32).tiny * tallest
    gamma = _gamma(steps, roundoff) + _gamma(products + 1, roundoff)
    return gamma * majorant + floor


def _gamma(steps: float, roundoff: float) -> float:
    return steps * roundoff / (1 - steps * roundoff) if steps * roundoff < 1 else math.inf


class _Functions(TorchDispatchMode):
    """Which convolutions run that are those of no module that is known."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = 0
        self.lines: dict[str, None] = {}

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if function._schema.name in ("aten::convolution", "aten::conv2d") and not self.inside:
            self.lines[f"a function's, kernel {tuple(args[1].shape)}"] = None
        return function(*args, **kwargs or {})


@contextmanager
def _counted(model: torch.nn.Module, left: dict[str, str]) -> Iterator[dict[str, None]]:
    """The convolutions that functions compute while the model runs, one line each."""
    mode = _Functions()

    def enter(*_: Any) -> None:
        mode.inside += 1

    def leave(*_: Any) -> None:
        mode.inside -= 1

    with ExitStack() as stack:
        for path, module in model.named_modules():
            if isinstance(module, AttentionConv) or path in left:
                for handle in (
                    module.register_forward_pre_hook(enter, prepend=True),
                    module.register_forward_hook(leave, always_call=True),
                ):
                    stack.callback(handle.remove)
        stack.enter_context(mode)
        yield mode.lines


@contextmanager
def _seeded() -> Iterator[None]:
    """Both models draw the same random numbers, and the caller's go on as they were."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def _is_training(model: torch.nn.Module) -> bool:
    return any(module.training for module in model.modules())


def _output_difference(expected: Any, outputs: Any) -> tuple[float, float, bool]:
    """The largest difference of all outputs, the largest output, and whether classes agree.

    Raises:
        ValueError: Where the model gives no tensors.
    """
    pairs = [
        (one, other)
        for one, other in zip(tree_leaves(expected), tree_leaves(outputs), strict=True)
        if isinstance(one, Tensor)
    ]
    if not pairs:
        raise ValueError(
            f"the model gives {type(expected).__name__} on the example, but expected a tensor, or "
            "several in a tuple, list or dictionary"
        )
    same = all(
        bool((one.argmax(-1) == other.argmax(-1)).all())
        for one, other in pairs
        if one.numel() and one.ndim and not one.is_complex() and one.dtype != torch.bool
    )
    wide = [
        [x.cpu().to(torch.complex128 if x.is_complex() else torch.float64) for x in pair]
        for pair in pairs
    ]
    differences = [torch.where(one == other, 0, other - one) for one, other in wide]
    return _largest(differences), _largest([one for one, _ in wide]), same


def _largest(tensors: Sequence[Tensor]) -> float:
    """The largest entry in absolute value; not a number if one is not."""
    return float(np.max([float(t.abs().max()) if t.numel() else 0.0 for t in tensors]))


def _has_double(tensor: Tensor) -> bool:
    return tensor.device.type != "mps"
