"""`diagnose`: what the heads of a trained model do."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from convattn.diagnosis.layers import LayerAttention
from convattn.diagnosis.measures import measure_heads
from convattn.diagnosis.nearest_convolution import nearest_convolution
from convattn.diagnosis.reading import AttentionModel, read_attention
from convattn.diagnosis.report import Diagnosis, LayerDiagnosis


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
    than those of the grid is left out. `convattn.diagnosis.measures` defines the numbers
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
        rotary: How a state dict's network turns its queries and keys: `"timm"` or `"dinov3"`, with
            KEY=VALUE behind a space as the command takes them; a `convattn.initialization.Rotary`,
            or a function from the width of a head and the grid to one; `"none"` for a network that
            turns none. Needed where networks that turn them have the same tensors.
        norm_epsilon: ε of LayerNorm of a state dict; None takes the library's for this kind.
        activation: Of the MLPs of a state dict: `"gelu"`, `"gelu_tanh"` or `"quick_gelu"`; None
            takes the library's for this kind. Needed for CLIP.
        kernel_size: K of the convolution in tokens, or one for each axis.
        layers: Which layers, counted from 1; None takes all.
        image_size: Without images, their pixels; for attention probabilities the tokens.

    Returns:
        A `Diagnosis`; `as_dict()` gives its numbers.

    Raises:
        ValueError: For a file that is refused, tensors that are missing, unexpected or misshapen,
            images that do not fit, and options that do not go with the model; `OSError` if a file
            cannot be read.

    >>> import convattn as ca
    >>> kernel = np.ones((3, 3, 1, 1), np.float32)
    >>> layer = ca.conv_to_attention(kernel, form="limit")  # nine one-hot heads
    >>> measured = diagnose(layer, image_size=5).layers[0]
    >>> measured.heads.one_shift.tolist() == [1.0] * 9, measured.heads.shift[0].tolist()
    (True, [-1, -1])
    >>> convolution = measured.convolution
    >>> convolution.relative, convolution.whole.limit  # a kernel of rank 1, nonnegative
    (0.0, 1)
    """
    if images is not None and image_size is not None:
        raise ValueError("images and image_size were both given, but the images say their size")
    of_state_dict = {"heads": heads, "rotary": rotary, "norm_epsilon": norm_epsilon}
    attention_model = read_attention(
        model, image_size=image_size, activation=activation, **of_state_dict
    )
    return measure_model(attention_model, images, kernel_size=kernel_size, layers=layers)


def measure_model(
    model: AttentionModel,
    images: Any,
    *,
    kernel_size: int | Sequence[int] = 3,
    layers: Sequence[int] | None = None,
) -> Diagnosis:
    """`diagnose` of a model that was read.

    Raises:
        ValueError: For images that do not fit, and numbers of layers that there are not.
    """
    pixels = None if images is None else _read_images(images)
    chosen = _chosen(model.attend(pixels), layers)
    done = tuple(measure_layer(*each, kernel_size) for each in chosen)
    if not done:
        raise ValueError(f"{model.name} has no layers, but expected at least one")
    grids = dict.fromkeys(layer.grid for layer in done)
    uniform = (_uniform(grid, kernel_size) for grid in grids)
    return Diagnosis(model.name, (*model.notes_of(pixels), *uniform), done, model.patch_size)


def _uniform(grid: tuple[int, int], kernel_size: int | Sequence[int]) -> str:
    """What the measures would be if the heads chose nothing."""
    tokens = grid[0] * grid[1]
    attention = np.full((1, 1, tokens, tokens), 1 / tokens)
    measures = measure_heads(attention, grid)
    nearest = nearest_convolution(attention[0].reshape(1, *grid, *grid), None, kernel_size)
    return (
        f"Uniform attention on {grid[0]} × {grid[1]} tokens: distance {measures.distance[0]:.2f}, "
        f"entropy {measures.entropy[0]:.2f}, spread {measures.spread[0]:.2f}, one shift "
        f"{1 / tokens:.2g}, to conv {nearest.heads[0]:.2f}."
    )


def _read_images(images: Any) -> np.ndarray:
    """Images as a model takes them, in float64; others are refused."""
    array = np.asarray(images)
    if array.ndim != 4 or not len(array) or array.dtype.kind != "f":
        hint = "; bytes are normalised by (images / 255 - mean) / std" * (array.dtype.kind in "iu")
        raise ValueError(
            f"images have shape {array.shape} and dtype {array.dtype}, but expected floats "
            f"[images, height, width, channels], at least one image{hint}"
        )
    if not np.isfinite(array).all():
        raise ValueError("images have entries that are not finite; every pixel must be a number")
    return array.astype(np.float64)


def _chosen(
    all_layers: Iterable[LayerAttention], layers: Sequence[int] | None
) -> Iterator[tuple[int, LayerAttention]]:
    """Those with the numbers that are wanted, none of which may be beyond the last."""
    count = 0
    for count, layer in enumerate(all_layers, 1):
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
        maps[:, -tokens:, -tokens:].reshape(-1, rows, columns, rows, columns)
        for maps in (layer.attention.mean(axis=0), layer.at_mean)
    )
    nearest = nearest_convolution(at_mean, layer.maps, kernel_size)
    return LayerDiagnosis(number, layer.name, layer.grid, heads, nearest, mean)
