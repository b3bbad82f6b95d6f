"""`network`: a network by its name, with the weights of a file, as a function of JAX."""

import difflib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils._pytree import tree_leaves

from convattn.extras import require
from convattn.networks.named import FAMILIES, NEAR, own_network
from convattn.torch.checkpoints import load_into, read_state_dict
from convattn.torch.functions import function_of

IMAGES, INCEPTION = (3, 224, 224), (3, 299, 299)
_SLOW_TO_INITIALISE = ("googlenet", "inception_v3")

Builder = Callable[..., tuple[torch.nn.Module, tuple[int, ...]]]


class Network(NamedTuple):
    """A network as a function of JAX.

    Attributes:
        function: Of images.
        example_shape: Of one example without the batch, such as `(3, 224, 224)`; None where it is
            not known.
        module: The module of PyTorch.
        notes: What a user should know, one sentence each: a prefix of names that was left out.
    """

    function: Callable[..., Any]
    example_shape: tuple[int, ...] | None
    module: torch.nn.Module
    notes: tuple[str, ...] = ()

    def outputs_in_pytorch(self, images: np.ndarray) -> list[np.ndarray]:
        """The outputs of the module itself, in the order of JAX: dictionaries by their keys."""
        import jax

        with torch.no_grad():
            outputs = self.module(torch.from_numpy(images))
        leaves = jax.tree.leaves(outputs)
        leaves = leaves if all(map(torch.is_tensor, leaves)) else tree_leaves(outputs)
        return [leaf.numpy() for leaf in leaves]


def network(
    name: str,
    weights: Path | str | None = None,
    dtype: str = "float32",
    *,
    made: torch.nn.Module | None = None,
) -> Network:
    """A network of torchvision or timm, or one's own, in evaluation mode.

    Args:
        name: `torchvision/resnet50`, `timm/resnet50` or any other name of these libraries; or
            `MODULE:FUNCTION` or `FILE.py:FUNCTION`, called without arguments, which gives a module
            of PyTorch. That code is run.
        weights: A state dict: `.safetensors`, `.npz`, or what `torch.save` wrote, read with
            `weights_only=True`, so that nothing in it runs. None keeps the weights that the network
            is built with: random ones, for torchvision and timm.
        dtype: That it computes in; float64 where JAX has its 64-bit types enabled.
        made: What the function of that name has given already.

    Raises:
        ValueError: For a name that there is not, with near ones; for what the function gives; and
            as `load_into` and `read_state_dict` do for the weights.

    >>> import jax.numpy as jnp
    >>> network("torch.nn:ReLU").function(jnp.array([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    family, _, rest = name.partition("/")
    build = None if ":" in name else BUILDERS.get(family)
    module: Any
    shape: tuple[int, ...] | None
    if build is not None:
        module, shape = build(rest)
    elif ":" in name:
        module, shape = (own_network(name) if made is None else made), None
        if not isinstance(module, torch.nn.Module):
            raise ValueError(
                f"network={name!r} gives {type(module).__name__}, but expected a torch.nn.Module; "
                "a function of JAX needs nothing of this package"
            )
        configuration = getattr(module, "pretrained_cfg", None) or {}
        if isinstance(configuration, dict) and configuration.get("input_size"):
            shape = tuple(configuration["input_size"])
    else:
        raise ValueError(f"network={name!r}, but expected one of {', '.join(FAMILIES)}")
    notes: tuple[str, ...] = ()
    if weights is not None:
        state = read_state_dict(weights)
        rebuild = None if build is None else lambda count: build(rest, num_classes=count)[0]
        module, notes = load_into(module, state, str(weights), architecture=name, rebuild=rebuild)
        if getattr(module, "transform_input", None) is False:
            notes += (
                "transform_input is False; for the weights that torchvision distributes it is "
                "True: build the network in a function of your own, MODULE:FUNCTION",
            )
    module.eval().to(getattr(torch, dtype))
    return Network(function_of(module), shape, module, notes)


def _torchvision(name: str, **options: Any) -> tuple[torch.nn.Module, tuple[int, ...]]:
    require("torchvision")
    import torchvision

    if name not in torchvision.models.list_models():
        raise ValueError(_no_such("torchvision", name, torchvision.models.list_models()))
    if name in _SLOW_TO_INITIALISE:
        options["init_weights"] = False
    model = torchvision.models.get_model(name, weights=None, **options)
    return model, INCEPTION if name == "inception_v3" else IMAGES


def _timm(name: str, **options: Any) -> tuple[torch.nn.Module, tuple[int, ...]]:
    require("timm")
    import timm

    if name.partition(".")[0] not in timm.list_models():
        raise ValueError(_no_such("timm", name, timm.list_models()))
    try:
        model = timm.create_model(name, pretrained=False, **options)
    except RuntimeError as error:  # a tag that there is not
        known = timm.list_pretrained(f"{name.partition('.')[0]}.*")
        raise ValueError(_no_such("timm", name, known)) from error
    return model, tuple(model.pretrained_cfg.get("input_size") or IMAGES)


BUILDERS: dict[str, Builder] = {"torchvision": _torchvision, "timm": _timm}


def _no_such(library: str, name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), NEAR, cutoff=0.5)
    offered = ", ".join(f"{library}/{model}" for model in near)
    return f"network='{library}/{name}', but {library} has no such network" + (
        f"; near ones are {offered}" if near else f"; see {library}'s list of models"
    )
