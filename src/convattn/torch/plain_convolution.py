"""Which convolutions compute with the weight that they hold, and nothing beside it."""

from typing import Any

import torch
from torch.nn import functional
from torch.nn.modules import conv as convolutions
from torch.nn.utils import parametrize, prune

CONVOLUTIONS = {1: functional.conv1d, 2: functional.conv2d}
PLAIN = (
    convolutions.Conv1d,
    convolutions.Conv2d,
    convolutions.ConvTranspose1d,
    convolutions.ConvTranspose2d,
)
# The methods that a call of a convolution goes through.
_METHODS = ("forward", "_conv_forward", "_output_padding", "__call__", "_call_impl")


def has_xla_padding(conv: Any) -> bool:
    """Whether it is timm's with TensorFlow's padding, which the size of the image decides."""
    return type(conv).__name__ == "Conv2dSame" and type(conv).__module__.startswith("timm.")


def reason_to_keep(module: Any) -> str | None:
    """Why attention does not express it; None if it does."""
    if not isinstance(module, convolutions._ConvNd):
        return f"{type(module).__name__} is no convolution"
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
    own = [name for name in _METHODS if getattr(kind, name, None) is not getattr(plain, name, None)]
    if own and not has_xla_padding(module):
        return f"{kind.__name__} has a {own[0]} of its own"
    if replaced := [name for name in _METHODS if name in vars(module)]:
        return f"its {replaced[0]} was replaced"
    return None


def require_own_weight(path: str, module: Any) -> None:
    """Refuse hooks, and weights that are computed at each call, in which attention has no part."""
    where = path or "the model"
    tail = "before to_attention, or leave it out with where="
    if parametrize.is_parametrized(module):
        name = next(iter(module.parametrizations))
        kinds = [
            type(parametrization).__name__ for parametrization in module.parametrizations[name]
        ]
        raise ValueError(
            f"{where}: its {name} is computed by the parametrisation {', '.join(kinds)}, but "
            "expected a parameter; call torch.nn.utils.parametrize.remove_parametrizations("
            f"layer, {name!r}) {tail}"
        )
    require_no_hooks(path, module)


def require_no_hooks(path: str, module: Any) -> None:
    """Refuse hooks, those of older weight norms, spectral norms and pruning among them."""
    where = path or "the model"
    tail = "before to_attention, or leave it out with where="
    remedies = {
        "WeightNorm": ("weight norm", "remove_weight_norm(layer)"),
        "SpectralNorm": ("spectral norm", "remove_spectral_norm(layer)"),
    }
    for hook in module._forward_pre_hooks.values():
        kind = type(hook).__name__
        if isinstance(hook, prune.BasePruningMethod):
            name = hook._tensor_name
            remedy = ("pruning", f"prune.remove(layer, {name!r})")
        elif kind in remedies:
            remedy = remedies[kind]
        else:
            continue
        raise ValueError(
            f"{where}: its weight is computed by {remedy[0]} at each call, but expected a "
            f"parameter; call torch.nn.utils.{remedy[1]} {tail}"
        )
    hooks = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
    for attribute in hooks:
        for hook in getattr(module, attribute).values():
            name = getattr(hook, "__qualname__", type(hook).__name__)
            raise ValueError(
                f"{where} has the hook {name}, but expected a convolution without hooks, which "
                f"would not be called; remove it {tail}"
            )
