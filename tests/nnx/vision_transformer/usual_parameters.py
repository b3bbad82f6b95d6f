"""State dicts of small vision transformers as they are usually initialised, and how they attend."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import erf, softmax

from convattn.diagnosis.transformers import block_attention, normalised
from convattn.networks.vision_transformer.state_dicts import read_transformer
from convattn.networks.weights.files import WeightsFile


def usual_parameters(
    width: int = 32,
    depth: int = 2,
    grid: tuple[int, int] = (4, 5),
    patch: int = 2,
    *,
    before: tuple[str, ...] = ("cls_token",),
    seed: int = 0,
    deviation: float = 0.05,
    dtype: Any = np.float32,
) -> dict[str, np.ndarray]:
    """By timm's names; more hidden features than channels, biases that are not zero."""
    rng = np.random.default_rng(seed)
    tokens, hidden = grid[0] * grid[1] + len(before), 2 * width
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(before, (1, 1, width))
    shapes |= {
        "pos_embed": (1, tokens, width),
        "patch_embed.proj.weight": (width, 3, patch, patch),
        "patch_embed.proj.bias": (width,),
        "norm.weight": (width,),
        "norm.bias": (width,),
    }
    for number in range(depth):
        block = {
            "attn.qkv.weight": (3 * width, width),
            "attn.qkv.bias": (3 * width,),
            "attn.proj.weight": (width, width),
            "attn.proj.bias": (width,),
            "mlp.fc1.weight": (hidden, width),
            "mlp.fc1.bias": (hidden,),
            "mlp.fc2.weight": (width, hidden),
            "mlp.fc2.bias": (width,),
            **{f"norm{n}.{kind}": (width,) for n in (1, 2) for kind in ("weight", "bias")},
        }
        shapes |= {f"blocks.{number}.{name}": shape for name, shape in block.items()}
    arrays = {name: deviation * rng.normal(size=shape) for name, shape in shapes.items()}
    for name in arrays:
        if ".norm" in name or name.startswith("norm"):
            arrays[name] = arrays[name] + name.endswith("weight")
    return {name: values.astype(dtype) for name, values in arrays.items()}


def images_between(
    low: float, high: float, grid: tuple[int, int], patch: int, seed: int
) -> np.ndarray:
    """Noise, constants at both ends, and corners of the range."""
    rng = np.random.default_rng(seed)
    shape = (grid[0] * patch, grid[1] * patch, 3)
    parts = [rng.uniform(low, high, shape), np.full(shape, high), np.full(shape, low)]
    parts += [rng.choice([low, high], shape), np.full(shape, (low + high) / 2)]
    half = parts[0].copy()
    half[: shape[0] // 2] = high
    half[shape[0] // 2 :] = (low + high) / 2
    return np.stack([*parts, half])


def measured_leaks(
    parameters: dict[str, np.ndarray], initialization: Any, images: np.ndarray, rotary: Any = None
) -> np.ndarray:
    """`[layers]`: the most that a head gives to other tokens than its target."""
    leaks = []
    for start, _, _, attention in walk(parameters, initialization, images, rotary):
        before = attention.shape[2] - initialization.grid[0] * initialization.grid[1]
        leak = 0.0
        for head, shift in enumerate(start.shifts):
            at = targets(initialization.border, initialization.grid, shift, before)
            rows = attention[:, head, before:]
            leak = max(leak, float(1 - rows[:, np.arange(len(at)), at].min()))
        leaks.append(leak)
    return np.array(leaks)


def targets(border: str, grid: tuple[int, int], shift: tuple[int, int], before: int) -> np.ndarray:
    """The key that each token should look at, worked out from the names of the borders."""
    indices = []
    for row, column in np.ndindex(*grid):
        at = [row + shift[0], column + shift[1]]
        inside = 0 <= at[0] < grid[0] and 0 <= at[1] < grid[1]
        if border == "circular":
            at = [at[0] % grid[0], at[1] % grid[1]]
        elif border == "edge":
            at = [min(max(a, 0), n - 1) for a, n in zip(at, grid, strict=True)]
        indices.append(0 if border == "class" and not inside else before + at[0] * grid[1] + at[1])
    return np.array(indices)


def measured_distances(
    parameters: dict[str, np.ndarray], initialization: Any, images: np.ndarray, rotary: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """`[layers]` twice: the largest distance of the attention branch from the convolution, and the
    largest norm of what the convolution gives, each at any token."""
    distances, sizes = [], []
    for start, block, normal, attention in walk(parameters, initialization, images, rotary):
        before = attention.shape[2] - initialization.grid[0] * initialization.grid[1]
        branch, channels = attended(block, normal, attention), start.kernel.shape[2]
        expected = np.zeros(
            (len(images), initialization.grid[0] * initialization.grid[1], channels)
        )
        rows, columns = start.kernel.shape[:2]
        for tap in np.ndindex(rows, columns):
            shift = (tap[0] - (rows - 1) // 2, tap[1] - (columns - 1) // 2)
            at = targets(initialization.border, initialization.grid, shift, before)
            expected += normal[:, at, :channels] @ start.kernel[tap]
        gap = branch[:, before:, :channels] - expected
        distances.append(np.linalg.norm(gap, axis=-1).max())
        sizes.append(np.linalg.norm(expected, axis=-1).max())
    return np.array(distances), np.array(sizes)


def walk(
    parameters: dict[str, np.ndarray], initialization: Any, images: np.ndarray, rotary: Any
) -> Iterator[tuple[Any, Any, np.ndarray, np.ndarray]]:
    """Each layer's start, block, normalised tokens and attention on these images."""
    model = read_transformer(
        WeightsFile("model", parameters, {}), len(initialization.layers[0].shifts)
    )
    tokens = first_tokens(model, images)
    for block, start in zip(model.blocks, initialization.layers, strict=True):
        normal = normalised(tokens, block, "norm1", model.epsilon)
        if rotary is None:
            attention = block_attention(block, normal, model.heads, np.zeros(()))
        else:
            attention = turned_attention(block, normal, model.heads, rotary, initialization.grid)
        yield start, block, normal, attention
        tokens = tokens + attended(block, normal, attention) + block["output.bias"]
        hidden = normalised(tokens, block, "norm2", model.epsilon)
        hidden = hidden @ block["fc1.weight"].T + block["fc1.bias"]
        hidden = hidden * (1 + erf(hidden / np.sqrt(2))) / 2
        fed = hidden @ block["fc2.weight"].T + block["fc2.bias"]
        tokens = tokens + block.get("scale2", 1) * fed


def attended(block: Any, normal: np.ndarray, attention: np.ndarray) -> np.ndarray:
    """What the attention adds but for its bias."""
    heads, width = attention.shape[1], normal.shape[-1]
    value = block["value.weight"].reshape(heads, -1, width)
    output = block["output.weight"].reshape(width, heads, -1)
    mixed = np.einsum("ihqk,ikc,hdc->iqhd", attention, normal, value)
    return np.einsum("iqhd,ohd->iqo", mixed, output)


def turned_attention(
    block: Any, normal: np.ndarray, heads: int, rotary: Any, grid: tuple[int, int]
) -> np.ndarray:
    """That of a network with rotary positions: two by two, by cosines and sines of the angles."""
    before, pairs = normal.shape[1] - grid[0] * grid[1], len(rotary.turns)
    parts = []
    for name in ("query", "key"):
        part = normal @ block[f"{name}.weight"].T + block[f"{name}.bias"]
        part = part.reshape(*normal.shape[:2], heads, 2 * pairs).copy()
        for token, place in enumerate(np.ndindex(*grid)):
            at = [origin + step for origin, step in zip(rotary.origin, place, strict=True)]
            for pair, (rows, columns) in enumerate(rotary.turns):
                angle = 2 * np.pi * (rows * at[0] + columns * at[1])
                one, two = pair, pair + pairs
                if rotary.layout == "interleaved":
                    one, two = 2 * pair, 2 * pair + 1
                here = part[:, before + token]
                first, second = here[..., one].copy(), here[..., two].copy()
                here[..., one] = np.cos(angle) * first - np.sin(angle) * second
                here[..., two] = np.sin(angle) * first + np.cos(angle) * second
        parts.append(part)
    scores = np.einsum("iqhd,ikhd->ihqk", *parts) / np.sqrt(2 * pairs)
    return softmax(scores, axis=-1)


def first_tokens(model: Any, images: np.ndarray) -> np.ndarray:
    """What the first layer is given."""
    patch = model.patch.shape[2]
    count, height, width, channels = images.shape
    squares = images.reshape(count, height // patch, patch, width // patch, patch, channels)
    flat = squares.transpose(0, 1, 3, 5, 2, 4).reshape(count, -1, patch * patch * channels)
    tokens = flat @ model.patch.reshape(len(model.patch), -1).T + model.patch_bias
    others = np.broadcast_to(model.prefix, (count, *model.prefix.shape))
    joined = np.concatenate([others, tokens], axis=1)
    if model.positions is not None:
        joined[:, -len(model.positions) :] += model.positions
    return joined
