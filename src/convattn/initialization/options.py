"""What `convolutional` refuses: options out of range, and networks that it cannot set."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from convattn.initialization.positions import BORDERS, USED
from convattn.initialization.rotary import Rotary
from convattn.networks.vision_transformer.state_dicts import VisionTransformer
from convattn.networks.weights.files import WeightsFile

LARGEST = 1e30  # of parameters and of an image's numbers


def read_parameters(parameters: Any) -> WeightsFile:
    """The state dict that was given, its arrays copied."""
    if not isinstance(parameters, Mapping) or not all(isinstance(name, str) for name in parameters):
        raise ValueError(
            f"parameters is {type(parameters).__name__}, but expected a state dict: names and "
            "arrays, such as model.state_dict()"
        )
    arrays = {}
    for name, value in parameters.items():
        try:
            array = np.asarray(value).copy()
        except Exception as error:
            raise ValueError(
                f"{name} is {type(value).__name__}, but expected an array, or a tensor on the CPU "
                "that needs no gradient and has a dtype that NumPy knows, such as tensor.detach()"
                f".cpu().float(): {error}"
            ) from error
        if array.dtype.kind != "f" and array.dtype.name != "bfloat16":
            raise ValueError(
                f"{name}.dtype={array.dtype}, but expected floating-point numbers; convert the "
                "parameters to float32 first"
            )
        if array.size and not float(np.abs(array[np.isfinite(array)]).max(initial=0)) < LARGEST:
            raise ValueError(
                f"{name} has entries of {LARGEST:.0e} or more, but expected smaller ones, so that "
                "norms are finite; look for a diverged training run"
            )
        arrays[name] = array
    return WeightsFile("parameters", arrays, {})


def require_fit(arrays: dict[str, np.ndarray], file: WeightsFile) -> dict[str, np.ndarray]:
    """The arrays, if what was put into the dtypes of the file is finite there."""
    for name, array in arrays.items():
        if array is not file.arrays[name] and not np.isfinite(array.astype(np.float64)).all():
            raise ValueError(
                f"{name} would overflow in {array.dtype}; give parameters of a wider dtype, or a "
                "smaller kernel, gain, position_norm or image_range"
            )
    return arrays


def require_options(
    leak: Any, gain: Any, position_norm: Any, every_layer: Any, approximate: Any
) -> None:
    """Refuse what is no number, or out of range."""

    def number(value: Any) -> bool:
        real = isinstance(value, int | float | np.integer | np.floating)
        return real and not isinstance(value, bool) and bool(np.isfinite(value))

    problem = ""
    if not number(leak) or not 0 < leak < 1:
        problem = f"leak={leak!r}, but expected a number between 0 and 1, such as 0.1"
    elif not number(gain) or not gain:
        problem = f"gain={gain!r}, but expected a finite number other than zero"
    elif position_norm is not None and not (number(position_norm) and position_norm > 0):
        problem = f"position_norm={position_norm!r}, but expected a positive number"
    elif not isinstance(every_layer, bool) or not isinstance(approximate, bool):
        problem = (
            f"every_layer={every_layer!r} and approximate={approximate!r}, but expected True or "
            "False"
        )
    if problem:
        raise ValueError(problem)


def require_width(model: VisionTransformer, reserved: int) -> None:
    """Refuse tokens with too few channels."""
    width = len(model.patch_bias)
    if width <= reserved:
        raise ValueError(
            f"tokens have {width} channels, but expected more than the {reserved} that positions "
            "take; take a wider model"
        )


def require_scores(model: VisionTransformer, rotary: Rotary | None) -> None:
    """Refuse a network whose scores cannot depend on positions as they should."""
    first, head_dim = model.blocks[0], len(model.blocks[0]["query.weight"]) // model.heads
    tables, problem = model.table is not None or "table" in first, ""
    if model.pre_norm:
        problem = (
            "the parameters have a LayerNorm before the blocks (CLIP's pre_layrnorm, timm's "
            "norm_pre), but expected none: it would change the positions; take a ViT without it"
        )
    elif rotary is not None and not isinstance(rotary, Rotary):
        problem = f"rotary={rotary!r}, but expected a Rotary, such as Rotary.axial({head_dim})"
    elif tables or (rotary is None and model.positions is None):
        problem = (
            "the parameters have no added positions (pos_embed, position_embeddings), but expected "
            "them and no table of relative positions; a network with such tables takes a "
            "convolution by the tables alone: see convattn.conv_to_attention; give rotary=Rotary("
            "...) if queries and keys are turned"
        )
    elif rotary is None and model.is_rotary:
        problem = (
            "rotary=None, but expected a Rotary: the parameters have the names of a network that "
            "turns its queries and keys (timm's vit_*_rope_ape); give rotary=Rotary(...), or for a "
            "ViT of timm its last LayerNorm too, by which it is told"
        )
    elif rotary is None and head_dim < USED:
        problem = (
            f"heads have {head_dim} features, but expected at least {USED} for the scores; take "
            "fewer heads, or a wider model"
        )
    elif rotary is not None and head_dim != 2 * len(rotary.turns):
        problem = (
            f"rotary has {len(rotary.turns)} pairs, but expected {head_dim / 2:g}: heads have "
            f"{head_dim} features; give heads, or turns of zero for pairs that are not turned"
        )
    elif rotary is not None and not {"query.bias", "key.bias"} <= first.keys():
        problem = (
            "queries or keys have no biases, but expected both (attn.qkv.bias): with rotary "
            "positions they make the scores; take a model with them, in timm attn_type='rope' and "
            "qkv_bias=True"
        )
    if problem:
        raise ValueError(problem)


def require_border(border: str | None, before: int, rotary: Rotary | None) -> str:
    """The requested border, or the usual one.

    >>> require_border(None, 1, None), require_border(None, 0, None)
    ('class', 'edge')
    """
    usual = "class" if before and rotary is None else "edge"
    border = usual if border is None else border
    if not isinstance(border, str):
        raise ValueError(f"border={border!r}, but expected one of {BORDERS}")
    if rotary is not None and border != "edge":
        raise ValueError(
            f"border={border!r} with rotary, but expected 'edge': frequencies do not close the "
            "grid, and tokens before it are not turned; leave the border out"
        )
    if border not in BORDERS or (border == "class" and not before):
        raise ValueError(
            f"border={border!r}, but expected 'edge' or 'circular', or 'class' with a class token"
        )
    return border
