"""What a caller gives to an operator: arrays, shapes that fit, masks of the keys."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool

from convattn.operators.arrays import as_array


def arrays_of(parameters: Any) -> Any:
    """The parameters with each leaf as a JAX array.

    Raises:
        ValueError: For leaves that are no numbers, or that JAX would silently narrow.

    >>> arrays_of({"value": np.ones(2, np.float32)})["value"].shape
    (2,)
    """

    def converted(path: Any, part: Any) -> Array:
        return as_array(part, f"parameters{jax.tree_util.keystr(path)}")

    return jax.tree_util.tree_map_with_path(converted, parameters)


def require_shape(part: Array | None, name: str, expected: tuple[int | str, ...]) -> None:
    """Refuse a part of another shape; an expected axis that is only named may have any size.

    Raises:
        ValueError: As described above.

    >>> require_shape(jnp.ones((2, 5)), "merge", (2, "out"))
    """
    if part is None:
        return
    fits = part.ndim == len(expected) and all(
        isinstance(wanted, str) or size == wanted
        for size, wanted in zip(part.shape, expected, strict=True)
    )
    if not fits:
        raise ValueError(
            f"{name}.shape={part.shape}, but should be [{', '.join(map(str, expected))}] to fit "
            "the images and the other parameters; nothing is broadcast: repeat what is shared"
        )


def checked_key_mask(
    key_mask: Any, space: tuple[int, ...], key_stride: tuple[int, ...], causal: bool
) -> Bool[Array, "*space"]:
    """The mask, True where a key may be attended to, as an array that leaves every query a key.

    Under `causal` the query at the first position has one key, the first; if that is masked, its
    softmax is 0/0. A mask under `jit` cannot be looked at: there a query without keys gets zeros.

    Raises:
        ValueError: For a mask of another shape or type, and for a concrete mask under which some
            query has no key.

    >>> checked_key_mask([True, False], (2,), (1,), True).tolist()
    [True, False]
    """
    traced = isinstance(key_mask, jax.core.Tracer)
    mask = key_mask if traced else np.asarray(key_mask)
    if mask.dtype != np.bool_ or mask.shape != space:
        raise ValueError(
            f"key_mask has the shape {mask.shape} and dtype {mask.dtype}, but should be bool of "
            f"the images' own {space}, True where a key may be attended to; compare, as in "
            "mask > 0, rather than cast, and give it no batch axis"
        )
    if not traced:
        keys = mask[tuple(slice(None, None, step) for step in key_stride)]
        if keys.size and not (keys.flat[0] if causal else keys.any()):
            where = "the first key, the only one of the first query" if causal else "every key"
            raise ValueError(
                f"key_mask masks {where} (of those at key_stride={key_stride}), so its softmax is "
                "0/0, not weights; let at least one key through for each query"
            )
    return jnp.asarray(mask)
