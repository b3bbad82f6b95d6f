"""Who competes on a layer, and how each is made ready to run."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
from jax import Array

import convattn as ca
from benchmarks import layers
from benchmarks.layers import LayerMaker
from benchmarks.measurement import Runner, jax_runner
from benchmarks.plain_layer import convolution, maps_alone, plain_attention, plain_parameters
from benchmarks.settings import Settings
from benchmarks.torch_layer import torch_is_there, torch_runner
from convattn.encodings import RelativePosition
from convattn.encodings.layer import AttentionLayer
from convattn.fast import choose_windows
from convattn.fast.backend import Work
from convattn.fast.options import AttentionOptions, Window
from convattn.fast.selection import BACK_ENDS, choose_backend
from convattn.operators.shifts import TokenGrid

STORED_PAIRS = 3
STORING_PAIRS = ("dense", "dot_product", "plain dense", "torch")


class Program(NamedTuple):
    """A function of parameters and images, and what it is applied to."""

    apply: Callable[[Any, Array], Array]
    parameters: Any
    images: Array


class Implementation(NamedTuple):
    """One column of the benchmark.

    Attributes:
        name: Of the back end, `"auto"`, or of the baseline.
        runner: Compiles it.
        pair_bytes: What holding all weights takes, forward and backward; 0 for who holds none.
        chose: The back end behind `"auto"` and `"grid"`.
        work: What the cost model is told, for back ends.
        refusal: Why it cannot compete, or None.
    """

    name: str
    runner: Callable[[], Runner]
    pair_bytes: float = 0.0
    chose: str | None = None
    work: Work | None = None
    refusal: str | None = None


def layer_implementations(
    make: LayerMaker, baselines: tuple[str, ...], side: int, features: int, settings: Settings
) -> list[Implementation]:
    """Everybody who is to compete on a layer at a size, those who refuse included.

    Args:
        make: The layer.
        baselines: What competes besides the back ends: `"grid"`, `"plain dense"`, `"lax.conv"`,
            `"maps alone"`, `"torch"`.
        side, features: Of images of side × side tokens.
        settings: Of the run.
    """
    layer = make(side, features, settings)
    requested = settings.back_ends
    names = [name for name in (*BACK_ENDS, "auto") if requested is None or name in requested]
    implementations = [ours(name, name, layer, side, features, settings) for name in names]
    for name in baselines:
        if name == "grid":
            grid = layers.grid_of_centers(side, features, settings)
            if requested is None or "separable" in requested:
                implementations.append(ours("grid", "separable", grid, side, features, settings))
        elif name != "torch" or (torch_is_there() and jax.default_backend() == "cpu"):
            implementations.append(baseline(name, layer, side, features, settings))
    return implementations


def ours(
    name: str, back_end: str, layer: AttentionLayer, side: int, features: int, settings: Settings
) -> Implementation:
    """A back end, or `"auto"`, through `apply_attention`."""
    grid = TokenGrid((side, side), layer.ring)
    windows = chosen_windows(layer, grid) if back_end == "windowed" else None
    options = AttentionOptions(precision=settings.jax_precision, windows=windows)
    chosen = back_end
    if back_end == "auto":
        tokens = (settings.batch, side, side, features)
        chosen = choose_backend("auto", layer, grid, tokens, options).name
    refusal = BACK_ENDS[chosen].refusal(layer, grid, options)

    program = our_program(back_end, layer, windows, side, features, settings)
    return Implementation(
        name,
        lambda: jax_runner(*program),
        pair_bytes(layer, grid, settings) if chosen in STORING_PAIRS else 0.0,
        None if chosen == name else chosen,
        None if refusal else BACK_ENDS[chosen].work(layer, grid, settings.batch, features, options),
        refusal,
    )


def our_program(
    back_end: str,
    layer: AttentionLayer,
    windows: tuple[Window, ...] | None,
    side: int,
    features: int,
    settings: Settings,
) -> Program:
    """`apply_attention` with a back end."""

    def apply(layer: AttentionLayer, images: Array) -> Array:
        precision = settings.jax_precision
        return ca.apply_attention(
            layer, images, backend=back_end, precision=precision, windows=windows
        )

    return Program(apply, layer, layers.images(side, features, settings))


def chosen_windows(layer: AttentionLayer, grid: TokenGrid) -> tuple[Window, ...] | None:
    """The windows of the windowed back end; None where it refuses the layer whatever they are."""
    if not isinstance(layer.encoding, RelativePosition):
        return None
    everything = tuple((steps.start, steps.stop - 1) for steps in grid.shift_ranges)
    options = AttentionOptions(windows=(everything,) * layer.heads)
    if BACK_ENDS["windowed"].refusal(layer, grid, options) is not None:
        return None
    return choose_windows(layer.encoding, grid, "float32")


def baseline(
    name: str, layer: AttentionLayer, side: int, features: int, settings: Settings
) -> Implementation:
    """The plain dense layer, the convolution, or the PyTorch layer."""
    pairs = pair_bytes(layer, TokenGrid((side, side), layer.ring), settings)

    def runner() -> Runner:
        if name == "torch":
            return torch_runner(layer, layers.images(side, features, settings))
        return jax_runner(*baseline_program(name, layer, side, features, settings))

    return Implementation(name, runner, pairs if name in STORING_PAIRS else 0.0)


def baseline_program(
    name: str, layer: AttentionLayer, side: int, features: int, settings: Settings
) -> Program:
    """The plain dense layer, the convolution, or the maps alone, in JAX."""
    precision = settings.jax_precision
    if name == "maps alone":
        kernel = layers.kernel(features, settings)
        patches = layers.images(side, features * kernel.shape[0] * kernel.shape[1], settings)
        return Program(partial(maps_alone, precision=precision), kernel, patches)
    images = layers.images(side, features, settings)
    if name == "lax.conv":
        apply: Callable[[Any, Array], Array] = partial(convolution, precision=precision)
        return Program(apply, layers.kernel(features, settings), images)
    return Program(partial(plain_attention, precision=precision), plain_parameters(layer), images)


def pair_bytes(layer: AttentionLayer, grid: TokenGrid, settings: Settings) -> float:
    """The memory of the weights of all pairs, their scores and their gradients, in float32."""
    queries = grid.queries[0] * grid.queries[1]
    images = settings.batch if layer.content is not None else 1
    return STORED_PAIRS * 4.0 * images * layer.heads * queries * grid.number_of_keys
