"""What each attention layer starts as, and how near to that it is for certain."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import hypot

import numpy as np
from jaxtyping import Float

from convattn.bounds.spectral_norm import spectral_norm_bound
from convattn.initialization.filters import Filters
from convattn.initialization.leaks import SLACK
from convattn.initialization.positions import Shift
from convattn.initialization.streams import Stream
from convattn.operators.shifts import kernel_shifts

OUTSIDE = {
    "class": "outside the grid stands the class token: zeros in the first layer",
    "edge": "outside the grid stands the nearest token of the edge",
    "circular": "the grid goes on at its other side",
}


@dataclass(frozen=True)
class LayerStart:
    """One attention layer as it starts.

    Attributes:
        shifts: δ of each head, rows and columns.
        kernel: `[K_1, K_2, channels, channels]`, the convolution of the channels without positions.
        heads: How many heads have a part in it.
        wanted: How many one-hot heads of this dimension it takes; more than `heads` if it is
            approximated.
        leak: No head gives more than this to other tokens than its target, on any image of the
            range.
        distance: Nor is the attention branch further than this from the convolution at any token,
            in the Euclidean norm: in exact arithmetic on the stored parameters. What float32 adds
            by rounding is about 1e-6 of the values.
        largest: As far as the convolution's own value can be from its bias there, for comparison.
    """

    shifts: tuple[Shift, ...]
    kernel: Float[np.ndarray, "rows columns channels out_channels"]
    heads: int
    wanted: int
    leak: float
    distance: float
    largest: float


@dataclass(frozen=True)
class Initialization:
    """Parameters that start as convolutions, and how near to them they are.

    Attributes:
        parameters: By the names that were given, in the same shapes and dtypes.
        layers: What each attention layer starts as.
        border: `"class"`, `"edge"` or `"circular"`.
        grid: Rows and columns of tokens.
        head_dim: d.
        sufficient: With so many heads of this dimension any kernel of this size and channels can be
            built.
    """

    parameters: Mapping[str, np.ndarray]
    layers: tuple[LayerStart, ...]
    border: str
    grid: tuple[int, int]
    head_dim: int
    sufficient: int

    def __str__(self) -> str:
        """A line for each layer; those of zero have no part in the convolution."""
        lines = [
            f"{len(self.layers)} layers on {self.grid[0]} × {self.grid[1]} tokens; "
            f"{OUTSIDE[self.border]}"
        ]
        for number, layer in enumerate(self.layers, 1):
            shifts = " ".join(f"({a},{b})" for a, b in layer.shifts[: layer.heads])
            unused = len(layer.shifts) - layer.heads
            lines.append(
                f"layer {number}: heads at {shifts}{f', {unused} of zero' if unused else ''}; leak "
                f"at most {layer.leak:.2g}; within {layer.distance:.3g} of the convolution, whose "
                f"values are up to {layer.largest:.3g}"
                + (", so the bound says nothing" if layer.distance >= layer.largest else "")
            )
        return "\n".join(lines)


def layer_starts(
    filters: list[Filters], streams: list[Stream], leaks: list[Float[np.ndarray, " heads"]]
) -> tuple[LayerStart, ...]:
    """What is certain of each layer of the stored network."""
    layers = []
    for layer_filters, stream, leak in zip(filters, streams, leaks, strict=True):
        leaked = min(float(leak @ stream.norms), stream.stacked * hypot(*leak))
        size, channels = layer_filters.kernel.shape[:2], layer_filters.kernel.shape[-1]
        taps = kernel_shifts(size, (1, 1))
        left = dict(
            zip(taps, layer_filters.kernel.reshape(len(taps), channels, channels), strict=True)
        )
        sizes = [size for size in map(spectral_norm_bound, left.values()) if size]
        joint = spectral_norm_bound(layer_filters.kernel.reshape(-1, channels)) * len(sizes) ** 0.5
        largest = min(sum(sizes), joint)
        for shift, own in zip(layer_filters.shifts, stream.maps, strict=True):
            left[shift] = left[shift] - own
        missing = sum(spectral_norm_bound(tap) for tap in left.values())
        distance, largest = (2 * leaked + missing) * stream.read, largest * stream.read
        layers.append(
            LayerStart(
                layer_filters.shifts,
                layer_filters.kernel,
                layer_filters.used,
                layer_filters.needed,
                float(leak.max()),
                distance * SLACK,
                largest * SLACK,
            )
        )
    return tuple(layers)
