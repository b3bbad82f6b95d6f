"""Exact at finite parameters or in a limit: what each encoding offers, and what goes together."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike

# Which encoding has an exact form at finite parameters, which a limit form, and the parameter that
# goes to infinity there. What is not in the table is refused.
ENCODINGS = {
    "bias": {"exact": True, "limit": "logit"},
    "scalar": {"exact": True, "limit": "logit"},
    "quadratic": {"exact": False, "limit": "alpha"},
    "enumerated": {"exact": False, "limit": "alpha"},
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
    if not isinstance(encoding, str) or encoding not in ENCODINGS:
        raise ValueError(f"encoding={encoding!r}, but should be one of {', '.join(ENCODINGS)}")
    if exact is not None and not isinstance(exact, bool):
        raise ValueError(f"exact={exact!r}, but should be True, False or None (the default)")
    row = ENCODINGS[encoding]
    given = {"logit": logit, "alpha": alpha}
    for name, parameter in given.items():
        if parameter is None:
            continue
        if name != row["limit"]:
            raise ValueError(
                f"{name}={parameter} was given, but encoding={encoding!r} has no such parameter; "
                f"its limit form takes {row['limit']}"
            )
        if exact or (exact is None and row["exact"]):
            raise ValueError(
                f"{name}={parameter} belongs to the limit form of encoding={encoding!r}, but the "
                f"exact form was asked for; pass exact=False or leave {name} out"
            )
        require_positive(parameter, name, dtype)
    if exact and not row["exact"]:
        raise ValueError(
            f"exact=True with encoding={encoding!r}, which is exact only in the limit "
            f"{row['limit']} → ∞; use encoding='bias' or 'scalar', or exact=False"
        )
    require_leak(leak, dtype)
    return bool(row["exact"]) if exact is None else exact


def require_positive(parameter: float | Array, name: str, dtype: DTypeLike) -> None:
    """Refuse what is not one positive finite number in `dtype`, subnormal numbers included.

    Raises:
        ValueError: As described above.
    """
    number, limits = one_number(parameter, name, dtype), jnp.finfo(dtype)
    if number is not None and not float(limits.tiny) <= number <= float(limits.max):
        raise ValueError(
            f"{name}={parameter}, but should be positive and finite in {jnp.dtype(dtype).name}: at "
            f"{name} ≤ 0 a head attends away from its target; leave it out for the value that "
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
            f"leak={leak}, but should lie strictly between 0 and 1 in {jnp.dtype(dtype).name}, and "
            f"not below {least:.1e}; 0.5 is the default"
        )


def one_number(parameter: float | Array, name: str, dtype: DTypeLike) -> float | None:
    """A parameter rounded to `dtype`, or None if it is traced and cannot be looked at.

    Raises:
        ValueError: For what is no number, and for more than one.
    """
    if isinstance(parameter, (str, bytes, bool, complex)):
        raise ValueError(f"{name}={parameter!r}, but should be one real number for all heads")
    if jnp.shape(parameter) != ():
        raise ValueError(
            f"{name} has shape {jnp.shape(parameter)}, but should be one number for all heads"
        )
    if isinstance(parameter, jax.core.Tracer):
        return None
    with np.errstate(over="ignore", under="ignore"):
        return float(np.asarray(parameter).astype(dtype))
