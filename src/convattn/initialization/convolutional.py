"""A vision transformer whose attention layers start as given convolutions of their tokens.

**Claim.** With positions in eight channels of the stream, scores that read them alone, and value
maps that do not (`construction.py`), head h attends most to the token that its offset δ_h names, in
every layer and for every image (with border "edge" for those whose tokens' deviations do not differ
too much: `positions.py`). With rotary positions it does so for every image by the biases
of queries and keys (`rotary_positions.py`). The attention branch is

    Σ_δ z_(q+δ) W_δ + b,    z = LayerNorm(x),  W_δ = Σ_(h: δ_h = δ) V_h O_h,

up to the error that its leaks leave: Σ_h Σ_k A_h(q, k)(z_k - z_(q+δ_h)) V_h O_h. As |z_k - z_l| ≤
2R (`streams.py`) it is at most 2R Σ_h leak_h |V_h O_h|, and at most 2R |S| √Σ leak_h², S the V_h
O_h on top of each other. For a kernel that the heads are not, by rounding or under a budget, it is
R Σ_δ |ΔW_δ| more. **Proof.** Nothing is ever written into the reserved channels, so they hold what
they do in every layer; the rest is in `positions.py`, `leaks.py` and `rotary_positions.py`. ∎

What is convolved is what the layer attends to: the normalised tokens, without those channels.

*How sharp.* T one-hot heads need scores that span log(N/T) and more (S.sharpness); beyond that the
gradient of a score, A(1 - A), falls like the leak. So the scores have the least factor with which
no head leaks more than asked for, on the worst image of the range; on most it leaks far less. A
norm of the positions that is small beside that of the content makes that factor large, and heads
sharper for images of low contrast; one that is large leaves little of the content after LayerNorm.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float

from convattn.bounds.heads import count_heads
from convattn.initialization.construction import AddedPositions, Positions, with_filters
from convattn.initialization.filters import (
    Budget,
    Filters,
    given_filters,
    random_filters,
    read_kernels,
)
from convattn.initialization.layer_starts import Initialization, layer_starts
from convattn.initialization.leaks import PositionNorms
from convattn.initialization.options import (
    read_parameters,
    require_border,
    require_fit,
    require_options,
    require_scores,
    require_width,
)
from convattn.initialization.positions import CHANNELS, PositionCode
from convattn.initialization.rotary import Rotary
from convattn.initialization.rotary_positions import CHANNELS as ROTARY_CHANNELS
from convattn.initialization.rotary_positions import RotaryPositions
from convattn.initialization.streams import Stream, first_content, streams
from convattn.networks.vision_transformer.state_dicts import (
    VisionTransformer,
    read_transformer,
    with_parts,
)
from convattn.networks.vision_transformer.token_grid import token_grid
from convattn.networks.weights.files import WeightsFile
from convattn.operators.integers import as_integer, per_axis

ATTEMPTS = 8  # at scores that are sharp enough when they are rounded


def convolutional(
    parameters: Mapping[str, Any],
    kernel: Any = "impulses",
    *,
    heads: int | None = None,
    kernel_size: int | Sequence[int] | None = None,
    image_range: tuple[Any, Any] = (-1.0, 1.0),
    image_size: int | Sequence[int] | None = None,
    border: str | None = None,
    rotary: Rotary | None = None,
    leak: float = 0.1,
    position_norm: float | None = None,
    gain: float = 1.0,
    every_layer: bool = False,
    approximate: bool = False,
    seed: int = 0,
) -> Initialization:
    """Parameters of a vision transformer whose attention layers start as convolutions.

    Everything but the attention keeps the parameters that it is given, except in the last eight
    channels of the tokens, which hold positions: patch projection, added positions and the outputs
    of both sublayers are set there. Layer scale before the attention's sum becomes 1. With rotary
    positions two channels tell tokens before the grid apart; without such tokens there are none.

    What a state dict does not say is assumed: LayerNorm before both sublayers (pre-norm), its ε
    that of the library for this kind of network, and queries and keys that are turned as `rotary`
    says, or not at all. For another network the bounds say nothing.

    Args:
        parameters: The state dict of a ViT, DeiT, DINOv2 or SigLIP as `convattn diagnose` reads it,
            usually initialised: arrays, or tensors on the CPU.
        kernel: `"impulses"`: each head copies its channels from one offset, drawn at random;
            `"filters"`: each head has random maps; or HWIO arrays of tokens, for all layers or one
            for each, also depthwise `[K_1, K_2, 1, channels]`, of at most the width less the
            reserved channels.
        heads: Of each layer; None takes width / 64, as in ViT and DeiT.
        kernel_size: K of drawn offsets, 3 if not given.
        image_range: The least and the largest number that an image holds as the model takes it, one
            number for all channels or one for each. (-1, 1): bytes normalised with 0.5 and 0.5.
        image_size: Pixels. Without it the grid is taken for a square, if the number of positions
            allows it; of 16 positions and a class token it must be said, as they may be those of
            4 × 4 tokens, or of 3 × 5 and the class token.
        border: `"class"`, the default with a class token or registers, of which the first counts;
            `"edge"`, the default without one; `"circular"`. With rotary positions `"edge"` alone.
        rotary: How queries and keys are turned, if they are. Biases of queries and keys then make
            the scores, and added positions are like content: they keep their values.
        leak: In (0, 1): the most that a head of the first layer may give to other tokens than its
            target. Later layers have scores of the same size; what they leak at most is returned.
        position_norm: Of what positions add to a token; None takes the largest norm that an image
            of the range can have in the other channels, or more where border "edge" needs it. With
            rotary positions it is what tokens before the grid hold, and leaks and distances are
            those of all images of any range.
        gain: The factor of drawn kernels.
        every_layer: Whether that holds for all layers, which makes the scores of later ones larger:
            tokens may grow from layer to layer, far more than they do for most images. With rotary
            positions only the keys of tokens before the grid become larger.
        approximate: Whether kernels that take more heads than there are may be approximated.
        seed: Of what is drawn.

    Returns:
        An `Initialization`; printed, it is a table of the layers.

    Raises:
        ValueError: For a network without positions, with a LayerNorm before its blocks (CLIP) or
            with other tensors, too few heads or channels, a kernel larger than the grid,
            frequencies that do not tell its targets apart, rotary positions without biases of
            queries and keys, and options out of range.

    Source: this project. Random impulses as initialisation: Zheng et al. 2025 (arXiv:2505.19985),
        who fit W_Q and W_K.

    >>> rng = np.random.default_rng(0)
    >>> shapes = {"cls_token": (1, 1, 24), "pos_embed": (1, 17, 24), "norm.weight": (24,),
    ...     "patch_embed.proj.weight": (24, 3, 4, 4), "patch_embed.proj.bias": (24,),
    ...     "blocks.0.attn.qkv.weight": (72, 24), "blocks.0.attn.qkv.bias": (72,),
    ...     "blocks.0.attn.proj.weight": (24, 24), "blocks.0.attn.proj.bias": (24,),
    ...     "blocks.0.norm1.weight": (24,), "blocks.0.norm1.bias": (24,),
    ...     "blocks.0.norm2.weight": (24,), "blocks.0.norm2.bias": (24,),
    ...     "blocks.0.mlp.fc1.weight": (48, 24), "blocks.0.mlp.fc1.bias": (48,),
    ...     "blocks.0.mlp.fc2.weight": (24, 48), "blocks.0.mlp.fc2.bias": (24,)}
    >>> usual = {name: 0.02 * rng.normal(size=shape) for name, shape in shapes.items()}
    >>> start = convolutional(usual, heads=3)
    >>> start.border, start.layers[0].leak < 0.101, len(set(start.layers[0].shifts))
    ('class', True, 3)
    >>> turned = {name: array for name, array in usual.items() if name != "pos_embed"}
    >>> rotary = Rotary.axial(8, base=10.0)
    >>> start = convolutional(turned, heads=3, rotary=rotary, image_size=16)
    >>> start.border, start.layers[0].leak < 0.101, start.layers[0].kernel.shape
    ('edge', True, (3, 3, 22, 22))
    """
    file = read_parameters(parameters)
    model = read_transformer(file, None if heads is None else as_integer(heads, "heads"))
    reserved = CHANNELS if rotary is None else ROTARY_CHANNELS * bool(len(model.prefix))
    require_options(leak, gain, position_norm, every_layer, approximate)
    seed = as_integer(seed, "seed", 0)
    require_width(model, reserved)
    require_scores(model, rotary)
    sides = None if image_size is None else per_axis(image_size, 2, "image_size")
    grid = token_grid(model, None if sides is None else (sides[0], sides[1]))
    before, width = len(model.prefix), len(model.patch_bias)
    border = require_border(border, before, rotary)
    head_dim = len(model.blocks[0]["query.weight"]) // model.heads
    budget = Budget(model.heads, head_dim, width - reserved)
    kernels = read_kernels(kernel, len(model.blocks), budget.channels)
    largest = _largest_size(kernels, kernel_size, grid)
    filters = _filters(kernels, kernel_size, budget, gain, approximate, seed)
    reach = largest[0] // 2, largest[1] // 2
    positions: Positions
    if rotary is None:
        positions = AddedPositions(1.0, PositionCode.of(grid, reach, border))
    else:
        positions = RotaryPositions.of(rotary, grid, reach, before)
    tokens, convolved = grid[0] * grid[1], budget.channels
    patches, others = first_content(positions.with_positions(model), image_range, tokens, convolved)

    content = max(patches, others) if rotary is None else others
    largest_content = content or 1.0
    if position_norm is None and every_layer and border == "edge" and rotary is None:
        start = _stored(
            with_filters(positions.with_positions(model), filters, positions.used), file
        )
        largest_content = streams(start, filters, content, PositionNorms(0.0, 0.0, 0.0))[-1].content
    usual = positions.usual_norm(max(largest_content, patches), before)
    positions = replace(positions, norm=usual if position_norm is None else float(position_norm))

    filtered = with_filters(positions.with_positions(model), filters, positions.used)
    start = _stored(filtered, file)
    layer_streams = streams(start, filters, content, positions.stored_norms(start))
    arrays, leaks = _with_scores(
        filtered, file, positions, filters, layer_streams, leak, every_layer
    )
    layers = layer_starts(filters, layer_streams, leaks)
    channels = max(max(layer_filters.kernel.shape[2:]) for layer_filters in filters)
    counts = count_heads(
        largest, in_channels=channels, out_channels=channels, head_dim=head_dim, attention="shared"
    ).limit
    sufficient = int(counts.bounded_sufficient or counts.sufficient)
    return Initialization(arrays, layers, border, grid, head_dim, sufficient)


def _arrays(model: VisionTransformer, file: WeightsFile) -> dict[str, np.ndarray]:
    """The state dict of a network, by the names and in the dtypes of the file."""
    with np.errstate(over="ignore"):
        return require_fit(with_parts(file, model), file)


def _stored(model: VisionTransformer, file: WeightsFile) -> VisionTransformer:
    """The network as its state dict holds it, rounded."""
    return read_transformer(WeightsFile("parameters", _arrays(model, file), {}), model.heads)


def _with_scores(
    model: VisionTransformer,
    file: WeightsFile,
    positions: Positions,
    filters: list[Filters],
    layer_streams: list[Stream],
    leak: float,
    every_layer: bool,
) -> tuple[dict[str, np.ndarray], list[Float[np.ndarray, " heads"]]]:
    """The state dict with the least scores that leak no more, and what its heads leak at most.

    Scores are rounded as the parameters are, which can change a leak; then a smaller one is asked
    for.
    """
    requested = float(leak)
    for attempt in range(ATTEMPTS):
        blocks = []
        for number, (block, layer_filters) in enumerate(zip(model.blocks, filters, strict=True)):
            content = layer_streams[number if every_layer else 0].content
            blocks.append(
                positions.with_scores(model, block, layer_filters.shifts, content, requested)
            )
        arrays = _arrays(replace(model, blocks=tuple(blocks)), file)
        stored = read_transformer(WeightsFile("parameters", arrays, {}), model.heads)
        leaks = [
            positions.leaks(stored, block, layer_filters.shifts, stream.content)
            for block, layer_filters, stream in zip(
                stored.blocks, filters, layer_streams, strict=True
            )
        ]
        worst = float(max(each.max() for each in (leaks if every_layer else leaks[:1])))
        if worst <= leak:
            return arrays, leaks
        requested *= leak / worst * (1 - 2.0 ** (attempt - ATTEMPTS))
    raise ValueError(
        f"leak={leak}, but with scores rounded as the parameters are heads leak {worst:.3g}; "
        "take a larger leak or position_norm, or parameters of more bits"
    )


def _filters(
    kernels: Sequence[Any],
    kernel_size: int | Sequence[int] | None,
    budget: Budget,
    gain: float,
    approximate: bool,
    seed: int,
) -> list[Filters]:
    if (kernel_size is not None or gain != 1) and not any(isinstance(k, str) for k in kernels):
        raise ValueError("kernel_size or gain was given with kernels that say both; leave them out")
    filters = []
    for number, kernel in enumerate(kernels):
        if isinstance(kernel, str):
            size = _size(kernel, kernel_size)
            rng = np.random.default_rng([seed, number])
            filters.append(random_filters(kernel, size, budget, gain, rng))
        else:
            filters.append(given_filters(kernel, budget, approximate))
    return filters


def _size(kernel: Any, kernel_size: int | Sequence[int] | None) -> tuple[int, int]:
    """K_1 and K_2 of a kernel, or of one that is to be drawn."""
    if not isinstance(kernel, str):
        return kernel.shape[0], kernel.shape[1]
    sides = per_axis(3 if kernel_size is None else kernel_size, 2, "kernel_size")
    return sides[0], sides[1]


def _largest_size(
    kernels: Sequence[Any], kernel_size: int | Sequence[int] | None, grid: tuple[int, int]
) -> tuple[int, int]:
    """The largest kernel on each axis, if the grid holds it."""
    sizes = [_size(kernel, kernel_size) for kernel in kernels]
    rows, columns = (max(size[axis] for size in sizes) for axis in (0, 1))
    if grid == (1, 1):
        raise ValueError("a grid of one token has no other to attend to; take smaller patches")
    if rows > grid[0] or columns > grid[1]:
        raise ValueError(
            f"a kernel of {rows} × {columns} is larger than the grid of {grid[0]} × {grid[1]} "
            "tokens; take a smaller kernel, or smaller patches"
        )
    return rows, columns
