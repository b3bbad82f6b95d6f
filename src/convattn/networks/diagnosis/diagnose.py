"""`diagnose`: what the heads of a trained model do."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from convattn.encodings.layer import AttentionLayer
from convattn.networks.diagnosis.layers import (
    SWIN,
    LayerAttention,
    array_layers,
    layer_attention,
    swin_layers,
)
from convattn.networks.diagnosis.measures import measure_heads, wrong_row
from convattn.networks.diagnosis.nearest_convolution import nearest_convolution
from convattn.networks.diagnosis.report import Diagnosis, LayerDiagnosis
from convattn.networks.diagnosis.state_dicts import HEAD_DIM, read_transformer
from convattn.networks.diagnosis.transformers import attention_layers, token_grid
from convattn.networks.weights.files import WeightsFile, read_weights
from convattn.networks.weights.names import unread_network
from convattn.networks.weights.stored_layer import FORMAT, restore_one
from convattn.operators.shifts import per_axis

ZEROS = (
    "No images: one image of zeros, the mean colour of normalised images, so that positions alone "
    "decide."
)
ONE = "One image: what positions alone explain is not known."
NOWHERE = "Queries and keys are taken as they are, without rotary positions."
ROTARY = (
    "has the tensors of a network with rotary positions (RoPE; timm's vit_*_rope and vit_pe_*, "
    "DINOv3, PaddleOCR-VL), whose angles stand in no tensor: give rotary (--rotary timm, dinov3, "
    "or KEY=VALUE), or 'none' for a network that does not turn queries and keys"
)
ONE_WINDOW = "A Swin transformer is not run: each layer in one window, by its table alone."
FILLED = (
    "The ring is filled with pixels ({}): attention to it is counted as elsewhere, and the "
    "distance of the whole layer is that with zeros in its place."
)
UNKNOWN_MAPS = "Attention without value maps: the distance of a whole layer is not known."


def diagnose(
    model: Any,
    images: Any = None,
    *,
    heads: int | None = None,
    kernel_size: int | Sequence[int] = 3,
    layers: Sequence[int] | None = None,
    image_size: int | Sequence[int] | None = None,
    rotary: Any = None,
    norm_epsilon: float | None = None,
    activation: str | None = None,
) -> Diagnosis:
    """Measure each head of a model, and how near each layer is to a convolution.

    A layer is seen as the linear map Σ_h A_h ⊗ W_h from its normalised tokens to what it adds, with
    A_h its attention where every token is the mean of that token over the images. Tokens at
    different places have different means, so absolute positions remain. Attention to other keys
    than those of the grid is left out. `convattn.networks.diagnosis.measures` defines the numbers
    of the heads, `nearest_convolution` those of the layer.

    Args:
        model: A file (`.safetensors`, `.npz`, `.npy`) or what it would hold: the state dict of a
            ViT, DeiT, BEiT, DINOv2, CLIP or SigLIP with the names of timm or Hugging Face, or of a
            ViT with torchvision's or Google's; of a Swin, whose layers are seen in one window by
            their tables alone; an `AttentionLayer`; attention probabilities `[images, heads,
            queries, keys]`, or several such arrays by name, or `[layers, images, heads, queries,
            keys]`, by which any other network can be measured.
        images: `[images, height, width, channels]`, as the model takes them: for a state dict of
            the size that it was trained with, and normalised. None takes one image of zeros for a
            state dict; for an `AttentionLayer` without content `image_size` is enough.
        heads: Of a state dict that does not say them, as tables and Google's kernels do; None takes
            width / 64, as in ViT and DeiT.
        rotary: How a state dict's network turns its queries and keys: a
            `convattn.initialization.Rotary`, or a function from the width of a head and the grid to
            one; `"none"` for a network that turns none. Needed for a network whose positions stand
            in no tensor.
        norm_epsilon: ε of LayerNorm of a state dict; None takes the library's for this kind.
        activation: Of the MLPs of a state dict: `"gelu"`, `"gelu_tanh"` or `"quick_gelu"`; None
            takes the library's for this kind.
        kernel_size: K of the convolution in tokens, or one for each axis.
        layers: Which layers, counted from 1; None takes all.
        image_size: Without images, their pixels; for attention probabilities the tokens.

    Returns:
        A `Diagnosis`, with `as_dict()`, `head_table()` and `layer_table()`.

    Raises:
        ValueError: For a file that is refused, tensors that are missing, unexpected or misshapen,
            images that do not fit, and options that do not go with the model; `OSError` if a file
            cannot be read.

    >>> import convattn as ca
    >>> kernel = np.ones((3, 3, 1, 1), np.float32)
    >>> layer = ca.conv_to_attention(kernel, exact=False)  # nine one-hot heads
    >>> found = diagnose(layer, image_size=5).layers[0]
    >>> found.heads.one_shift.tolist() == [1.0] * 9, found.heads.shift[0].tolist()
    (True, [-1, -1])
    >>> found.convolution.relative, found.convolution.whole.limit  # a kernel of rank 1, nonnegative
    (0.0, 1)
    """
    pixels = None if images is None else _read_images(images)
    sides = None if image_size is None else per_axis(image_size, 2, "image_size")
    size = None if sides is None else (sides[0], sides[1])
    if pixels is not None and size is not None:
        raise ValueError("images and image_size were both given, but the images say their size")
    name, content = read_model(model)
    found, notes, patch = _layers(content, pixels, size, heads, rotary, norm_epsilon, activation)
    done = tuple(measure_layer(*each, kernel_size) for each in _chosen(found, layers))
    if not done:
        raise ValueError(f"{name} has no layers, but expected at least one")
    grids = dict.fromkeys(layer.grid for layer in done)
    uniform = (_uniform(grid, kernel_size) for grid in grids)
    return Diagnosis(name, (*notes, *uniform), done, patch)


def _layers(
    content: AttentionLayer | WeightsFile | Mapping[str, np.ndarray],
    pixels: np.ndarray | None,
    size: tuple[int, int] | None,
    heads: int | None,
    rotary: Any = None,
    norm_epsilon: float | None = None,
    activation: str | None = None,
) -> tuple[Iterable[LayerAttention], list[str], tuple[int, int] | None]:
    """The layers of a model, what must be said of them, and the pixels of a patch."""
    of_state_dict = {"heads": heads, "rotary": rotary, "norm_epsilon": norm_epsilon}
    of_state_dict["activation"] = activation
    for name, value in of_state_dict.items():
        if value is not None and not isinstance(content, WeightsFile):
            raise ValueError(
                f"{name}={value}, but expected none: the model says its attention itself"
            )
    if isinstance(content, AttentionLayer):
        positional = "Positions alone decide: the layer has no content scores."
        notes = [positional] if content.content is None else []
        if content.padding is not None:
            notes.append(FILLED.format(content.padding.fill.lower()))
        layer = layer_attention(content, pixels, size)
        return [layer], notes, (content.patch_size[0], content.patch_size[1])
    if not isinstance(content, WeightsFile):
        if pixels is not None:
            raise ValueError("images were given, but attention probabilities are of images already")
        return array_layers(content, size), [UNKNOWN_MAPS], None
    if any(map(SWIN.fullmatch, content.arrays)):
        if any(given is not None for given in (pixels, size, *of_state_dict.values())):
            raise ValueError(
                "images, image_size, heads, rotary, norm_epsilon or activation were given, but "
                "expected none for a Swin transformer: its layers are seen in one window each, by "
                "tables alone"
            )
        return swin_layers(content), [ONE_WINDOW], None
    network = read_transformer(content, heads, norm_epsilon, activation)
    settings = f"LayerNorm with ε = {network.epsilon:g}, MLP with {network.activation}"
    notes = [f"Names: {network.naming}; {settings}."]
    if rotary is None and network.is_rotary:
        raise ValueError(f"{content.name} {ROTARY}")
    if rotary is not None:
        notes.append(NOWHERE if rotary == "none" else f"Queries and keys turned by {rotary!r}.")
    turns = None if rotary is None or rotary == "none" else rotary
    rotary_of = turns if turns is None or callable(turns) else lambda width, grid: turns
    if network.assumed:
        notes.append(f"{network.heads} heads, assumed: {HEAD_DIM} features each.")
    side = network.patch.shape[2]
    if pixels is None:
        rows, columns = token_grid(network, size)
        pixels = np.zeros((1, rows * side, columns * side, network.patch.shape[1]))
        notes.append(ZEROS)
    notes.append(ONE if len(pixels) == 1 else f"{len(pixels)} images.")
    return attention_layers(network, pixels, rotary_of), notes, (side, side)


def _uniform(grid: tuple[int, int], kernel_size: int | Sequence[int]) -> str:
    """What the measures would be if the heads chose nothing."""
    tokens = grid[0] * grid[1]
    attention = np.full((1, 1, tokens, tokens), 1 / tokens)
    found = measure_heads(attention, grid)
    nearest = nearest_convolution(attention[0].reshape(1, *grid, *grid), None, kernel_size)
    return (
        f"Uniform attention on {grid[0]} × {grid[1]} tokens: distance {found.distance[0]:.2f}, "
        f"entropy {found.entropy[0]:.2f}, spread {found.spread[0]:.2f}, one shift "
        f"{1 / tokens:.2g}, to conv {nearest.heads[0]:.2f}."
    )


def read_model(
    model: Any,
) -> tuple[str, AttentionLayer | WeightsFile | Mapping[str, np.ndarray]]:
    """What a model is called, and it as a layer, a state dict, or arrays of attention by name.

    Args:
        model: As `diagnose` takes it, or a file that was read.

    Raises:
        ValueError: For a file that is refused; `OSError` if it cannot be read.
    """
    if isinstance(model, AttentionLayer):
        return "AttentionLayer", model
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
                told = unread_network(file.arrays)
                raise ValueError(
                    f"{file.name}, {key or 'its array'}, shape {array.shape}: {problem}; expected "
                    "attention probabilities [images, heads, queries, keys], after the softmax"
                    + (f". Or are these the tensors of {told}?" if told else "")
                )
        return file.name, arrays
    return file.name, file


def _read_images(images: Any) -> np.ndarray:
    found = np.asarray(images)
    if found.ndim != 4 or not len(found) or found.dtype.kind != "f":
        hint = "; bytes are normalised by (images / 255 - mean) / std" * (found.dtype.kind in "iu")
        raise ValueError(
            f"images have shape {found.shape} and dtype {found.dtype}, but expected floats "
            f"[images, height, width, channels], at least one image{hint}"
        )
    if not np.isfinite(found).all():
        raise ValueError("images have entries that are not finite; every pixel must be a number")
    return found.astype(np.float64)


def _chosen(
    found: Iterable[LayerAttention], layers: Sequence[int] | None
) -> Iterator[tuple[int, LayerAttention]]:
    """Those with the numbers that are wanted, none of which may be beyond the last."""
    count = 0
    for count, layer in enumerate(found, 1):
        if layers is None or count in layers:
            yield count, layer
    wrong = [number for number in layers or () if not 1 <= number <= count]
    if wrong:
        raise ValueError(f"layers={list(layers or ())}, but the model has layers 1 to {count}")


def measure_layer(
    number: int, layer: LayerAttention, kernel_size: int | Sequence[int]
) -> LayerDiagnosis:
    """All that is known of a layer."""
    rows, columns = layer.grid
    tokens = math.prod(layer.grid)
    heads = measure_heads(layer.attention, layer.grid)
    mean, at_mean = (
        each[:, -tokens:, -tokens:].reshape(-1, rows, columns, rows, columns)
        for each in (layer.attention.mean(axis=0), layer.at_mean)
    )
    nearest = nearest_convolution(at_mean, layer.maps, kernel_size)
    return LayerDiagnosis(number, layer.name, layer.grid, heads, nearest, mean)
