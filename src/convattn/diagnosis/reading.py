"""`read_attention`: a model, from a file or in memory, as what its layers attend to."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from convattn.diagnosis.layers import (
    SWIN,
    LayerAttention,
    array_layers,
    layer_attention,
    swin_layers,
)
from convattn.diagnosis.measures import wrong_row
from convattn.diagnosis.rotary_kind import read_rotary
from convattn.diagnosis.transformers import attention_layers
from convattn.encodings.layer import AttentionLayer
from convattn.fast.application import as_layer
from convattn.networks.vision_transformer.state_dicts import HEAD_DIM, read_transformer
from convattn.networks.vision_transformer.token_grid import token_grid
from convattn.networks.weights.files import WeightsFile, read_weights
from convattn.networks.weights.names import unread_network
from convattn.networks.weights.stored_layer import FORMAT, restore_one
from convattn.operators.integers import per_axis

LAYER, PROBABILITIES = "attention layer", "attention probabilities"
SWIN_TABLES, TRANSFORMER = "Swin transformer", "vision transformer"
ZEROS = (
    "No images: one image of zeros, the mean colour of normalised images, so that positions alone "
    "decide."
)
ONE = "One image: what positions alone explain is not known."
NOWHERE = "Queries and keys are taken as they are, without rotary positions."
SCALED = (
    "No tensor says whether positions are scaled with the images' size, as timm's ref_feat_shape "
    "does: at another size than that of the training, give spacing=trained/present."
)
ROTARY = (
    "has the tensors of a network with rotary positions (RoPE; timm's vit_*_rope and vit_pe_*, "
    "DINOv3, PaddleOCR-VL), whose angles stand in no tensor: give rotary (--rotary timm, dinov3, "
    "or KEY=VALUE), or 'none' for a network that does not turn queries and keys (timm's "
    "vit_*_clip_* and EVA, SigLIP)"
)
ACTIVATION = (
    "has the tensors of CLIP, whose activation stands in no tensor: give activation (--activation "
    "quick_gelu for OpenAI's weights and others trained with it, gelu for most of OpenCLIP's and "
    "timm's vit_pe_*)"
)
_ONE_WINDOW = "A Swin transformer is not run: each layer in one window, by its table alone."
_FILLED = (
    "The padding ({}) is filled in before. Distances and shifts are counted from the pixel under "
    "the kernel's centre, which for output 0 is {}; attention beyond the outputs' own places "
    "counts as elsewhere, and the distance of the whole layer is that with zeros in the padding."
)
_DILATED = (
    "The layer's taps are {} pixels apart: a convolution of K taps at that dilation d lies within "
    "one of d(K - 1) + 1, which is the kernel size to ask for."
)
_UNKNOWN_MAPS = "Attention without value maps: the distance of a whole layer is not known."
Images = np.ndarray | None


@dataclass(frozen=True)
class AttentionModel:
    """A model whose attention can be computed, or is known.

    Attributes:
        name: What it is called.
        kind: `LAYER`, `PROBABILITIES`, `SWIN_TABLES` or `TRANSFORMER`.
        notes: What a reader must know of how its attention comes about.
        attend: From images as the model takes them, or None for none, to the attention of its
            layers; images are refused where it takes none.
        patch_size: Pixels of a patch on each axis; None if not known.
        image_size: Gives the pixels of its images: what was asked for, or what it was trained
            with; None where it takes images of any size, or none.
        layer: The layer, where it is one.
    """

    name: str
    kind: str
    notes: tuple[str, ...]
    attend: Callable[[Images], Iterable[LayerAttention]]
    patch_size: tuple[int, int] | None = None
    image_size: Callable[[], tuple[int, int] | None] = lambda: None
    layer: AttentionLayer | None = None

    @property
    def takes_images(self) -> bool:
        """Whether its attention is computed, so that images may change it."""
        return self.patch_size is not None

    def notes_of(self, images: Images) -> tuple[str, ...]:
        """The notes, and what must be said of these images."""
        if self.kind != TRANSFORMER:
            return self.notes
        count = 1 if images is None else len(images)
        zeros = (ZEROS,) if images is None else ()
        return (*self.notes, *zeros, ONE if count == 1 else f"{count} images.")


def read_attention(
    model: Any, *, image_size: int | Sequence[int] | None = None, **of_state_dict: Any
) -> AttentionModel:
    """A model as `diagnose` takes it.

    Args:
        image_size: As `diagnose` takes it.
        of_state_dict: `heads`, `rotary`, `norm_epsilon`, `activation` of `diagnose`, or None.

    Raises:
        ValueError: For a file that is refused, tensors that are missing, unexpected or misshapen,
            and options that do not go with the model; `OSError` if a file cannot be read.

    >>> import convattn as ca
    >>> kernel = np.ones((3, 3, 1, 1), np.float32)
    >>> read_attention(ca.conv_to_attention(kernel, form="limit")).notes
    ('Positions alone decide: the layer has no content scores.',)
    """
    read_rotary(of_state_dict.get("rotary"))  # a wrong word is refused before a file is read
    sides = None if image_size is None else per_axis(image_size, 2, "image_size")
    size = None if sides is None else (sides[0], sides[1])
    name, content = _read_content(model)
    asked = {key: value for key, value in of_state_dict.items() if value is not None}
    if not isinstance(content, WeightsFile):
        for key, value in asked.items():
            raise ValueError(
                f"{key}={value}, but expected none: the model says its attention itself"
            )
        if isinstance(content, AttentionLayer):
            return _of_layer(name, content, size)
        return _of_probabilities(name, content, size)
    if any(map(SWIN.fullmatch, content.arrays)):
        sizes = {} if size is None else {"image_size": size}
        return _of_swin(content, {**sizes, **asked})
    return _of_transformer(content, size, **of_state_dict)


def _of_layer(
    name: str, layer: AttentionLayer, image_size: tuple[int, int] | None
) -> AttentionModel:
    notes = []
    if layer.content is None:
        notes.append("Positions alone decide: the layer has no content scores.")
    if layer.padding is not None:
        sides = zip(layer.padding.reach, layer.padding.widths, strict=False)
        centre = tuple(reach - before for (reach, _), (before, _) in sides)
        where = f"pixel {centre}" if centre else "as XLA's SAME has it"
        notes.append(_FILLED.format(layer.padding.fill.lower(), where))
    if max(layer.dilation) > 1:
        notes.append(_DILATED.format(layer.dilation))

    def attend(images: Images) -> Iterable[LayerAttention]:
        return [layer_attention(layer, images, image_size if images is None else None)]

    patch = (layer.patch_size[0], layer.patch_size[-1])
    return AttentionModel(name, LAYER, tuple(notes), attend, patch, layer=layer)


def _of_probabilities(
    name: str, arrays: Mapping[str, np.ndarray], tokens: tuple[int, int] | None
) -> AttentionModel:
    def attend(images: Images) -> Iterable[LayerAttention]:
        if images is not None:
            raise ValueError("images were given, but attention probabilities are of images already")
        return array_layers(arrays, tokens)

    return AttentionModel(name, PROBABILITIES, (_UNKNOWN_MAPS,), attend)


def _of_swin(file: WeightsFile, asked: Mapping[str, Any]) -> AttentionModel:
    def refuse(option: str) -> None:
        raise ValueError(
            f"{option}, but expected none for a Swin transformer: its layers are seen in one "
            "window each, by tables alone"
        )

    def attend(images: Images) -> Iterable[LayerAttention]:
        if images is not None:
            refuse("images were given")
        return swin_layers(file)

    for key, value in asked.items():
        refuse(f"{key}={value}")
    return AttentionModel(file.name, SWIN_TABLES, (_ONE_WINDOW,), attend)


def _of_transformer(
    file: WeightsFile,
    image_size: tuple[int, int] | None,
    *,
    heads: int | None = None,
    rotary: Any = None,
    norm_epsilon: float | None = None,
    activation: str | None = None,
) -> AttentionModel:
    network = read_transformer(file, heads, norm_epsilon, activation)
    unknown = [ROTARY] if rotary is None and network.is_rotary else []
    unknown += [ACTIVATION] if activation is None and network.pre_norm else []
    if unknown:
        raise ValueError(f"{file.name} {', and '.join(unknown)}")
    turns = read_rotary(rotary)
    notes = [network.settings, *file.assumed.values()]
    notes.append(NOWHERE if turns is None else f"Queries and keys turned by {rotary}. {SCALED}")
    if network.assumed:
        notes.append(f"{network.heads} heads, assumed: {HEAD_DIM} features each.")
    side, channels = network.patch.shape[2], network.patch.shape[1]

    def sizes() -> tuple[int, int]:
        rows, columns = token_grid(network, image_size)
        return rows * side, columns * side

    def attend(images: Images) -> Iterable[LayerAttention]:
        pixels = np.zeros((1, *sizes(), channels)) if images is None else images
        return attention_layers(network, np.asarray(pixels, np.float64), turns)

    return AttentionModel(file.name, TRANSFORMER, tuple(notes), attend, (side, side), sizes)


def _read_content(
    model: Any,
) -> tuple[str, AttentionLayer | WeightsFile | Mapping[str, np.ndarray]]:
    """What a model is called, and it as a layer, a state dict, or arrays of attention by name."""
    model = as_layer(model)
    if isinstance(model, AttentionLayer):
        return "AttentionLayer", model
    if hasattr(model, "state_dict"):
        raise ValueError(
            f"model={type(model).__name__}, a module, but expected its state dict or attention "
            "probabilities; pass model.state_dict(), and heads= where it has not width / 64"
        )
    if isinstance(model, str | Path):
        file = read_weights(model)
    elif isinstance(model, WeightsFile):
        file = model
    elif isinstance(model, Mapping):
        file = WeightsFile("the state dict", {k: np.asarray(v) for k, v in model.items()}, {})
    else:
        return "attention", {"": np.asarray(model)}
    if file.metadata.get("format") == FORMAT:
        return file.name, restore_one(file)
    if file.arrays and all(array.ndim in (4, 5) for array in file.arrays.values()):
        arrays = {key: file[key] for key in file.arrays}
        for key, array in arrays.items():
            if array.size and (problem := wrong_row(array)):
                network = unread_network(file.arrays)
                raise ValueError(
                    f"{file.name}, {key or 'its array'}, shape {array.shape}: {problem}; expected "
                    "attention probabilities [images, heads, queries, keys], after the softmax"
                    + (f". Or are these the tensors of {network}?" if network else "")
                )
        return file.name, arrays
    return file.name, file
