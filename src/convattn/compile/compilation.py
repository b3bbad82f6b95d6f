"""`to_vision_transformer`: a convolutional network as a stock vision transformer."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from convattn.compile import sizes
from convattn.compile.affine import Value
from convattn.compile.evaluation import affine_values, node_values
from convattn.compile.formats import EPSILON, constructor_arguments, named_arrays
from convattn.compile.network import Network, NotCompiled
from convattn.compile.parameters import Builder, Constants, lost_to_rounding
from convattn.compile.plan import LEAST_HEAD, Plan, make_plan
from convattn.compile.reader import read_network
from convattn.compile.transformer import CompiledTransformer, rows_first
from convattn.operators.integers import as_integer, per_axis
from convattn.operators.roundoff import unit_roundoff

DTYPES = ("float32", "float64")
MOST_LOST = 0.5  # of S, to the rounding of scores
SMALL = 64  # channels, where it is to be told which axis holds them
_ASSUMED = 64.0  # √Σ x² of a token's values, where there are no images to run
_MARGIN = 1.1  # by which tokens that hold no point of a lattice may exceed those that do


def to_vision_transformer(
    function: Callable[..., Any],
    *example: Any,
    format: str = "timm",
    patch_size: int | Sequence[int] = 1,
    num_heads: int | None = None,
    head_dim: int | None = None,
    dtype: str = "float32",
    epsilon: float | None = None,
    constants: Constants | None = None,
    for_training: bool = False,
    channels_first: bool | None = None,
    max_parameters: int = sizes.MAX_PARAMETERS,
) -> CompiledTransformer:
    """A convolutional network as the parameters of an unmodified vision transformer.

    Convolutions become attention heads, one for each offset between patches, and ReLU two GELUs of
    the MLP, at scores and slopes so large that what is left of them is below rounding.

    Args:
        function: Takes a batch of images, as its last argument, and gives logits `[batch,
            classes]`: convolutions, batch norms at fixed statistics, piecewise linear functions and
            exact GELU, sums, pooling, linear classifiers. Or a `torch.nn.Module` in evaluation
            mode, which becomes `convattn.torch.function_of(module)`.
        example: Its arguments: images `[batch, rows, columns, channels]`, or `[batch, channels,
            rows, columns]`, on which both are compared; shapes (`jax.ShapeDtypeStruct`) where they
            should not be.
        format: Whose names the arrays have: `"timm"`, `"transformers"` (version 5) or
            `"transformers4"`.
        patch_size: P, of the squares of pixels that become tokens.
        num_heads, head_dim: Of a block; None for those of fewest parameters.
        dtype: `"float32"` or `"float64"`, in which the vision transformer will compute.
        epsilon: LayerNorm's own; None for the library's default, 1e-6 or 1e-12.
        constants: Λ, s, the sharpness and ε; None for those at which all errors of the construction
            are below rounding.
        for_training: Whether the constants are moderate ones, with which gradients are well scaled
            (`Constants.for_training`). Then logits differ, as the report says, and the class may.
        channels_first: Whether the channels of images stand before rows and columns; None tells
            it from the shape.
        max_parameters: More are refused before anything is made.

    Raises:
        NotCompiled: A ValueError, for what the construction does not compute, with its place in the
            source; for a vision transformer that is too large, with its size.
        ValueError: For arguments that are none of those above.

    Source: docs/compile.md of this project.

    >>> import jax, jax.numpy as jnp
    >>> def network(images):
    ...     order = ("NHWC", "HWIO", "NHWC")
    ...     kernel = jnp.ones((3, 3, 1, 2)) / 9
    ...     features = jax.lax.conv_general_dilated(
    ...         images, kernel, (1, 1), "SAME", dimension_numbers=order
    ...     )
    ...     return jax.nn.relu(features).mean((1, 2))
    >>> compiled = to_vision_transformer(network, jnp.ones((1, 6, 6, 1)))
    >>> compiled.arguments["depth"], compiled.arguments["num_heads"]
    (2, 9)
    >>> bool(abs(compiled(jnp.ones((1, 6, 6, 1))) - network(jnp.ones((1, 6, 6, 1)))).max() < 1e-6)
    True
    """
    if format not in EPSILON:
        raise ValueError(f"format={format!r}, but expected one of {', '.join(EPSILON)}")
    if dtype not in DTYPES:
        raise ValueError(
            f"dtype={dtype!r}, but expected float32 or float64: LayerNorm and scores of narrower "
            "floats do not tell positions apart"
        )
    if dtype == "float64" and not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
        raise ValueError(
            "dtype='float64', but 64-bit types are off in JAX, which computes the logits here; "
            "enable them with jax.config.update('jax_enable_x64', True), or take float32"
        )
    if constants is not None and not isinstance(constants, Constants):
        raise ValueError(f"constants={constants!r}, but expected a Constants of convattn.compile")
    if constants is not None and epsilon is not None:
        raise ValueError(f"epsilon={epsilon} beside constants={constants}, which hold their own")
    if epsilon is not None:
        _check_epsilon(epsilon, format)
    function, example = _as_function(function), _checked(example, dtype)
    if for_training and constants is not None:
        raise ValueError(f"for_training=True beside constants={constants}; leave out one of them")
    if for_training and example and isinstance(example[-1], jax.ShapeDtypeStruct):
        raise ValueError("for_training=True with a shape, but expected images, which set constants")
    plan, first = _planned(
        function, example, patch_size, num_heads, head_dim, channels_first, max_parameters
    )
    if lost_to_rounding(plan, unit_roundoff(dtype)) > MOST_LOST:
        raise NotCompiled(
            f"{plan.network.image_size[0]} × {plan.network.image_size[1]} pixels in patches of "
            f"{plan.network.image.lattice.patch if plan.network.image.lattice else ()} have tokens "
            f"whose positions {dtype} does not tell apart, but expected fewer on an axis; take "
            "larger patches, or float64"
        )
    images = example[-1]
    concrete = not isinstance(images, jax.ShapeDtypeStruct)

    def compiled(own: Constants) -> CompiledTransformer:
        arrays = Builder(plan, own, for_training=for_training).arrays()
        timm = _narrowed(arrays, own, dtype)
        arguments = constructor_arguments(plan, own.epsilon, format)
        transformer = CompiledTransformer(
            named_arrays(timm, format),
            arguments,
            format,
            dtype,
            plan,
            own,
            first,
            timm,
            for_training,
        )
        if not concrete:
            return transformer
        report = transformer.compared(partial(function, *example[:-1]), images)
        return replace(transformer, report=report)

    if constants is not None:
        return compiled(constants)
    epsilon = EPSILON[format] if epsilon is None else epsilon
    values = node_values(plan.network, np.asarray(rows_first(images, first))) if concrete else {}

    def constants_for(largest: float) -> Constants:
        if for_training:
            return Constants.for_training(plan, epsilon, largest, _typical(plan.network, values))
        return Constants.of(dtype, epsilon, largest)

    largest = _largest(values) if concrete else _ASSUMED
    transformer = compiled(constants_for(largest))
    if transformer.report is not None and transformer.report.largest_token > _MARGIN * largest:
        return compiled(constants_for(transformer.report.largest_token))
    return transformer


def _narrowed(
    arrays: Mapping[str, np.ndarray], constants: Constants, dtype: str
) -> dict[str, np.ndarray]:
    """The arrays in the dtype, which holds LayerNorm's squares and the MLPs' weights."""
    limits = np.finfo(dtype)
    if not constants.norm <= float(limits.max) ** 0.5 / 4:
        raise ValueError(
            f"norm={constants.norm:.3g}, but expected at most {float(limits.max) ** 0.5 / 4:.3g}, "
            f"whose squares LayerNorm can add in {dtype}; scale the network or the images"
        )
    for name in (name for name in arrays if ".mlp." in name):
        sizes = np.abs(arrays[name][arrays[name] != 0])
        if not ((sizes >= limits.tiny) & (sizes <= limits.max)).all():
            raise ValueError(
                f"slope={constants.slope:.3g}, at which {name} has numbers beyond the normal range "
                f"of {dtype}, {limits.tiny:.3g} to {limits.max:.3g}; take a smaller or larger slope"
            )
    return {name: array.astype(dtype) for name, array in arrays.items()}


def _check_epsilon(epsilon: float, format: str) -> None:
    """Refuse what LayerNorm does not take, and what timm's arguments do not say."""
    if not 0 <= epsilon < np.inf:
        raise ValueError(f"epsilon={epsilon}, but expected a number ≥ 0, such as 1e-6")
    if format == "timm" and epsilon != EPSILON["timm"]:
        raise ValueError(
            f"epsilon={epsilon} for timm, whose VisionTransformer takes it inside norm_layer, "
            f"which no file says, but expected {EPSILON['timm']}; leave it out, or take "
            "constants=Constants(…) and give norm_layer=partial(LayerNorm, eps=…) yourself"
        )


def _checked(example: Sequence[Any], dtype: str) -> tuple[Any, ...]:
    """The example, its images in the dtype if that is wider, and finite."""
    if not example or isinstance(example[-1], jax.ShapeDtypeStruct):
        return tuple(example)
    *parameters, images = example
    if not hasattr(images, "shape") or not hasattr(images, "dtype"):
        raise ValueError(
            f"images of the type {type(images).__name__}, but expected an array of NumPy or JAX, "
            "or a tensor of PyTorch"
        )
    images = jnp.asarray(images)
    if jnp.issubdtype(images.dtype, jnp.floating) and not bool(jnp.isfinite(images).all()):
        raise ValueError("the images hold numbers that are not finite; remove them")
    wide = images.dtype == jnp.float32 and dtype == "float64"
    return (*parameters, images.astype(jnp.float64) if wide else images)


def size(
    function: Callable[..., Any],
    *example: Any,
    patch_size: int | Sequence[int] = 1,
    num_heads: int | None = None,
    head_dim: int | None = None,
    channels_first: bool | None = None,
) -> sizes.Size:
    """How large the vision transformer of a network is, without its arrays.

    Args:
        function, example, patch_size, num_heads, head_dim, channels_first: As for
            `to_vision_transformer`; the images may be a `jax.ShapeDtypeStruct`.

    Raises:
        NotCompiled: As `to_vision_transformer`, but for its size.

    >>> import jax, jax.numpy as jnp
    >>> size(lambda images: images.mean((1, 2)), jax.ShapeDtypeStruct((1, 8, 8, 3), jnp.float32))
    Size(width=20, num_heads=1, head_dim=20, blocks=1, hidden=20, tokens=65, parameters=4103)
    """
    function, example = _as_function(function), _checked(example, "float32")
    return sizes.Size.of(
        _planned(function, example, patch_size, num_heads, head_dim, channels_first, None)[0]
    )


def _as_function(function: Any) -> Callable[..., Any]:
    """A module of PyTorch as a function of JAX; functions as they are."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(function, torch.nn.Module):
        from convattn.torch import function_of

        return function_of(function)
    if not callable(function):
        raise ValueError(f"function={function!r}, but expected a function of images")
    return function


def _planned(
    function: Callable[..., Any],
    example: Sequence[Any],
    patch_size: int | Sequence[int],
    num_heads: int | None,
    head_dim: int | None,
    channels_first: bool | None,
    max_parameters: int | None,
) -> tuple[Plan, bool]:
    """The plan, and whether images have their channels first."""
    shape = tuple(getattr(example[-1], "shape", ())) if example else ()
    if len(shape) != 4 or 0 in shape:
        raise ValueError(
            f"the example's last argument has the shape {shape}, but expected images [batch, rows, "
            "columns, channels]"
        )
    if not jnp.issubdtype(example[-1].dtype, jnp.floating) or example[-1].dtype.itemsize < 4:
        raise ValueError(
            f"images of {example[-1].dtype}, but expected float32 or float64: bytes are scaled "
            "before, and LayerNorm does not tell narrower floats apart"
        )
    heads = None if num_heads is None else as_integer(num_heads, "num_heads")
    dim = None if head_dim is None else as_integer(head_dim, "head_dim", LEAST_HEAD)
    args = (function, example, patch_size, heads, dim)
    if channels_first is not None:
        return _plan(*args, channels_first, max_parameters), channels_first
    likely = shape[1] < min(shape[2:])
    try:
        return _plan(*args, likely, max_parameters), likely
    except NotCompiled as refusal:
        if min(shape[1:]) >= SMALL:  # no axis can be the other one's channels
            raise
        try:
            return _plan(*args, not likely, max_parameters), not likely
        except ValueError:
            raise refusal from None


def _plan(
    function: Callable[..., Any],
    example: Sequence[Any],
    patch_size: int | Sequence[int],
    num_heads: int | None,
    head_dim: int | None,
    first: bool,
    max_parameters: int | None,
) -> Plan:
    shape = example[-1].shape
    patch = per_axis(patch_size, 2, "patch_size")
    sides = shape[2:] if first else shape[1:3]
    if any(side % own for side, own in zip(sides, patch, strict=True)):
        raise ValueError(
            f"patch_size={patch} does not divide images of {sides[0]} × {sides[1]} pixels; take "
            "one that does, or pad the images"
        )
    tokens = (sides[0] // patch[0]) * (sides[1] // patch[1]) + 1
    if max_parameters is not None and tokens > sizes.MAX_TOKENS:
        raise NotCompiled(
            f"{sides[0]} × {sides[1]} pixels in patches of {patch[0]} × {patch[1]} are {tokens:,} "
            f"tokens, but expected at most {sizes.MAX_TOKENS:,}; take larger patches"
        )
    network = read_network(function, example, (patch[0], patch[1]), first)
    plan = make_plan(network, num_heads, head_dim)
    if max_parameters is not None:
        sizes.Size.of(plan).require_at_most(max_parameters, sizes.MAX_TOKENS)
    return plan


def _largest(values: Mapping[Value, np.ndarray]) -> float:
    """√Σ x² of a token, each value at its largest.

    Tokens that hold no point of a value's lattice are left out: only a run says what they hold.
    """
    phases = {value: 1 if value.lattice is None else value.lattice.phases for value in values}
    squares = sum(phases[value] * (held**2).sum(-1).max() for value, held in values.items())
    return float(np.sqrt(squares))


def _typical(network: Network, values: Mapping[Value, np.ndarray]) -> float:
    """The smallest of the nodes' root mean squares of what functions with bends are applied to."""
    bent = [affine_values(node.affine, values) for node in network.nodes if node.units.bends]
    return min((float(np.sqrt((numbers**2).mean())) for numbers in bent), default=1.0)
