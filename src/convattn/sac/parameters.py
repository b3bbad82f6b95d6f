"""The filters of a SAC operator (B19 §3), and whether they fit together.

Every operator of this package is a function of these parameters; 2-D self-attention (B19 §2) takes
those of 1×1 filters.
"""

from dataclasses import dataclass, field
from typing import Any

import jax
from jax import Array
from jaxtyping import Num

from convattn.operators.arrays import as_array
from convattn.operators.integers import as_integer
from convattn.sac.relative_bias import EvenBias, check_uniform_weight


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SelfAttentiveParameters:
    """The filters of a SAC operator.

    Attributes:
        value: H_V, `[heads, *taps, in, head_features]`.
        query, key: H_Q, H_K, `[heads, *taps, in, key_features]`; both None: no content.
        position: The even bias b, or None.
        output: H_Y of §2.1, `[heads, head_features, features]`; None adds the heads up.
        ordinary: H_R, `[*taps, in, ordinary_features]`, or None.
        merge: H_Y of §3, `[features + ordinary_features, out]`; with `ordinary`, and only then.
        bias: `[out]`, added at the end, or None; the paper has none.

    **Static fields**, a number for each axis: `stride`, `dilation`, `key_stride`; and `causal`.
    """

    value: Num[Array, "heads *taps in_channels head_features"]
    query: Num[Array, "heads *taps in_channels key_features"] | None = None
    key: Num[Array, "heads *taps in_channels key_features"] | None = None
    position: EvenBias | None = None
    output: Num[Array, "heads head_features features"] | None = None
    ordinary: Num[Array, "*taps in_channels ordinary_features"] | None = None
    merge: Num[Array, "joined_features out_channels"] | None = None
    bias: Num[Array, "out_channels"] | None = None
    stride: tuple[int, ...] = field(default=(1, 1), metadata={"static": True})
    dilation: tuple[int, ...] = field(default=(1, 1), metadata={"static": True})
    key_stride: tuple[int, ...] = field(default=(1, 1), metadata={"static": True})
    causal: bool = field(default=False, metadata={"static": True})

    @property
    def heads(self) -> int:
        """The number of heads."""
        return int(self.value.shape[0])

    @property
    def kernel_size(self) -> tuple[int, ...]:
        """n × m, the largest filter on each axis."""
        sizes = [
            array.shape[1:-2] for array in (self.value, self.query, self.key) if array is not None
        ]
        if self.ordinary is not None:
            sizes.append(self.ordinary.shape[:-2])
        return tuple(map(max, zip(*sizes, strict=True)))

    @property
    def out_channels(self) -> int:
        """The channels of the result."""
        last = self.merge if self.merge is not None else self.output
        return int((self.value if last is None else last).shape[-1])


def arrays_of(parameters: Any) -> Any:
    """The parameters with each leaf as a JAX array; refuses what `as_array` refuses.

    >>> import numpy as np
    >>> arrays_of({"value": np.ones(2, np.float32)})["value"].shape
    (2,)
    """
    return jax.tree_util.tree_map_with_path(
        lambda path, value: as_array(value, f"parameters{jax.tree_util.keystr(path)}"), parameters
    )


def check_parameters(parameters: SelfAttentiveParameters, images: Array) -> None:
    """Refuse parameters that do not fit together or to the images: shapes, and a concrete leak."""
    _check_grid(parameters, images)
    if (parameters.query is None) != (parameters.key is None):
        raise ValueError("query and key filters come together: give both, or neither")
    if (parameters.ordinary is None) != (parameters.merge is None):
        raise ValueError(
            "ordinary filters and the merge that reduces [y, y'] come together: give both, or "
            "neither"
        )
    value, channels = parameters.value, images.shape[-1]
    heads, features = parameters.heads, value.shape[-1]
    taps = ("height", "width")[-(value.ndim - 3) :]
    _require_shape(value, "value", (heads, *taps, channels, features))
    if parameters.query is not None:
        shape: tuple[int | str, ...] = (heads, *taps, channels, parameters.query.shape[-1])
        _require_shape(parameters.query, "query", shape)
        _require_shape(parameters.key, "key", shape)
    if parameters.position is not None:
        if parameters.position.heads not in (1, heads):
            raise ValueError(
                f"position.values.shape={parameters.position.values.shape} holds "
                f"{parameters.position.heads} heads, but the value filters of shape "
                f"{value.shape} have {heads}; give one table for each, or one"
            )
        check_uniform_weight(parameters.position)
    if parameters.output is not None:
        _require_shape(parameters.output, "output", (heads, features, "features"))
        features = parameters.output.shape[-1]
    if parameters.ordinary is not None and parameters.merge is not None:
        _require_shape(parameters.ordinary, "ordinary", (*taps, channels, "ordinary_features"))
        joined = features + parameters.ordinary.shape[-1]
        _require_shape(parameters.merge, "merge", (joined, "out"))
        features = parameters.merge.shape[-1]
    _require_shape(parameters.bias, "bias", (features,))


def _check_grid(parameters: SelfAttentiveParameters, images: Array) -> None:
    """Refuse strides and dilations that are not ≥ 1, or not one for each axis of the images."""
    axes = parameters.value.ndim - 3
    grid = {name: getattr(parameters, name) for name in ("stride", "dilation", "key_stride")}
    lengths = {len(sizes) for sizes in grid.values()}
    if axes not in (1, 2) or images.ndim != axes + 2 or lengths != {axes}:
        raise ValueError(
            f"images.shape={images.shape} with stride={parameters.stride}, dilation="
            f"{parameters.dilation} and key_stride={parameters.key_stride}, but value filters of "
            f"shape {parameters.value.shape} take {axes} spatial axes everywhere; add the batch "
            "axis with images[None], and give each of the three one number for each axis"
        )
    for name, sizes in grid.items():
        for entry in sizes:
            as_integer(entry, f"each of {name}={sizes}: entry", 1)
    if any(s % k for s, k in zip(parameters.stride, parameters.key_stride, strict=True)):
        raise ValueError(
            f"key_stride={parameters.key_stride} with stride={parameters.stride}, but expected a "
            "divisor of it on each axis, so that every query stands on a key; take 1 or the stride"
        )


def _require_shape(array: Array | None, name: str, expected: tuple[int | str, ...]) -> None:
    """Refuse an array of another shape; an expected axis that is only named may have any size."""
    if array is None:
        return
    fits = array.ndim == len(expected) and all(
        isinstance(length, str) or size == length
        for size, length in zip(array.shape, expected, strict=True)
    )
    if not fits:
        raise ValueError(
            f"{name}.shape={array.shape}, but expected [{', '.join(map(str, expected))}] to fit "
            "the images and the other parameters; nothing is broadcast: repeat what is shared"
        )
