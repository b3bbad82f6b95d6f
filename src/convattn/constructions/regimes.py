"""Every encoding with its construction, and which options of a conversion go together."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike

from convattn.constructions.cordonnier_theorem1 import quadratic_construction
from convattn.constructions.enumerated import enumerated_construction
from convattn.constructions.finite import leaky_construction
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.li_theorem1 import bias_construction
from convattn.constructions.polygon import polygon_construction
from convattn.constructions.rotary import rotary_construction
from convattn.constructions.scalar import scalar_construction
from convattn.encodings.base import PositionalEncoding

DEFAULT_LEAK = 0.5
Number = float | Array
Heads = tuple[PositionalEncoding, Array]  # the encoding, and the map of each head


class Construction(NamedTuple):
    """How an encoding expresses a convolution.

    Attributes:
        build: From the token maps, the geometry, whether the exact form is asked for, the leak of
            that and the parameter of the limit form, or None, to the heads.
        exact: Whether it has a form that is exact at finite parameters.
        limit: The name of the parameter that goes to infinity in its limit form.
        targeted: Whether each head reads one offset, but for the last of an exact form.
    """

    build: Callable[[Array, ConvolutionGeometry, bool, Number, Number | None], Heads]
    exact: bool
    limit: str
    targeted: bool = True


def _bias(
    maps: Array, geometry: ConvolutionGeometry, exact: bool, leak: Number, logit: Number | None
) -> Heads:
    if exact:
        return leaky_construction(maps, geometry, leak)
    return bias_construction(maps, geometry, logit)


# By the name that `conv_to_attention(encoding=...)` takes; a new encoding needs one row here.
CONSTRUCTIONS = {
    "bias": Construction(_bias, True, "logit"),
    "scalar": Construction(
        lambda maps, geometry, exact, leak, logit: scalar_construction(
            maps, geometry, exact, logit
        ),
        exact=True,
        limit="logit",
        targeted=False,
    ),
    "quadratic": Construction(
        lambda maps, geometry, exact, leak, alpha: quadratic_construction(maps, geometry, alpha),
        exact=False,
        limit="alpha",
    ),
    "enumerated": Construction(
        lambda maps, geometry, exact, leak, alpha: enumerated_construction(maps, geometry, alpha),
        exact=False,
        limit="alpha",
    ),
    "polygon": Construction(
        lambda maps, geometry, exact, leak, alpha: polygon_construction(maps, geometry, alpha),
        exact=False,
        limit="alpha",
    ),
    "rotary": Construction(
        lambda maps, geometry, exact, leak, alpha: rotary_construction(maps, geometry, alpha),
        exact=False,
        limit="alpha",
    ),
}


def check_regime(
    encoding: str,
    exact: bool | None,
    leak: float | Array,
    logit: float | Array | None,
    alpha: float | Array | None,
    dtype: DTypeLike,
) -> bool:
    """Settle exact or limit, and refuse what does not go together.

    Args:
        Those of `conv_to_attention`, and the dtype in which softmax runs.

    Raises:
        ValueError: As `conv_to_attention` says.

    >>> check_regime("bias", None, 0.5, None, None, jnp.float32)
    True
    >>> check_regime("quadratic", None, 0.5, None, 8.0, jnp.float32)
    False
    """
    if not isinstance(encoding, str) or encoding not in CONSTRUCTIONS:
        raise ValueError(f"encoding={encoding!r}, but expected one of {', '.join(CONSTRUCTIONS)}")
    if exact is not None and not isinstance(exact, bool):
        raise ValueError(f"exact={exact!r}, but expected True, False or None (the default)")
    row = CONSTRUCTIONS[encoding]
    given = {"logit": logit, "alpha": alpha}
    for name, parameter in given.items():
        if parameter is None:
            continue
        if name != row.limit:
            raise ValueError(
                f"{name}={parameter} was given, but encoding={encoding!r} has no such parameter; "
                f"its limit form takes {row.limit}"
            )
        if exact or (exact is None and row.exact):
            raise ValueError(
                f"{name}={parameter} belongs to the limit form of encoding={encoding!r}, but the "
                f"exact form was asked for; pass exact=False or leave {name} out"
            )
        require_positive(parameter, name, dtype)
    if exact and not row.exact:
        raise ValueError(
            f"exact=True with encoding={encoding!r}, which is exact only in the limit "
            f"{row.limit} → ∞; use encoding='bias' or 'scalar', or exact=False"
        )
    require_leak(leak, dtype)
    exact = row.exact if exact is None else exact
    if not (exact and encoding == "bias") and (isinstance(leak, Array) or leak != DEFAULT_LEAK):
        raise ValueError(
            f"leak={leak} was given, but only the exact form of encoding='bias' has a leak; leave "
            "it out, or take that form"
        )
    return exact


def require_positive(parameter: float | Array, name: str, dtype: DTypeLike) -> None:
    """Refuse what is not one positive finite number in `dtype`, subnormal numbers included.

    Raises:
        ValueError: As described above.
    """
    number, limits = one_number(parameter, name, dtype), jnp.finfo(dtype)
    if number is not None and not float(limits.tiny) <= number <= float(limits.max):
        raise ValueError(
            f"{name}={parameter}, but expected a positive finite number in "
            f"{jnp.dtype(dtype).name}: at {name} ≤ 0 a head attends away from its target; leave "
            "it out for the value that "
            "gives one-hot attention"
        )


def require_leak(leak: float | Array, dtype: DTypeLike) -> None:
    """Refuse an ε that is no number between 0 and 1 in `dtype`, or so small that N/ε overflows.

    Raises:
        ValueError: As described above.
    """
    number, limits = one_number(leak, "leak", dtype), jnp.finfo(dtype)
    least = float(limits.tiny) / float(limits.eps)
    if number is not None and not least <= number < 1:
        raise ValueError(
            f"leak={leak}, but expected a number strictly between 0 and 1 in "
            f"{jnp.dtype(dtype).name}, and not below {least:.1e}; 0.5 is the default"
        )


def one_number(parameter: float | Array, name: str, dtype: DTypeLike) -> float | None:
    """A parameter rounded to `dtype`, or None if it is traced and cannot be looked at.

    Raises:
        ValueError: For what is no number, and for more than one.
    """
    if isinstance(parameter, (str, bytes, bool, complex)):
        raise ValueError(f"{name}={parameter!r}, but expected one real number for all heads")
    if jnp.shape(parameter) != ():
        raise ValueError(
            f"{name}.shape={jnp.shape(parameter)}, but expected one number for all heads"
        )
    if isinstance(parameter, jax.core.Tracer):
        return None
    with np.errstate(over="ignore", under="ignore"):
        return float(np.asarray(parameter).astype(dtype))
