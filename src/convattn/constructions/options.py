"""The options of a conversion: which go together, and what each may be."""

from typing import Any, NamedTuple, SupportsIndex

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike

from convattn.constructions.narrow_heads import usable_epsilon
from convattn.constructions.table import CONSTRUCTIONS, Number
from convattn.operators.integers import as_integer

UNIFORM_WEIGHT = 0.5  # for which 1/(1 - ε) and ε/(1 - ε) are exact in binary
FORMS = {"exact": True, "limit": False}
BORDERS = {"zeros": False, "register": True}


class HeadOptions(NamedTuple):
    """How the heads are made; read and checked.

    Attributes:
        encoding: A name of the table of constructions.
        exact: Whether at finite parameters; else the limit form.
        uniform_weight: ε of the exact form.
        sharpness: M or α of the limit form, or None for the value that makes attention one-hot.
        fewest: Whether as few heads as this kernel needs, in place of one for each offset.
        head_dim: d_H, or None for the width that each head needs.
        epsilon: ε of the limit form of the fewest narrow heads, or None for √(2u).
        register: Whether a register stands for the zeros around the image.
    """

    encoding: str = "bias"
    exact: bool = True
    uniform_weight: Number = UNIFORM_WEIGHT
    sharpness: Number | None = None
    fewest: bool = False
    head_dim: int | None = None
    epsilon: float | None = None
    register: bool = False


def read_options(
    dtype: DTypeLike,
    score_dtype: DTypeLike,
    *,
    encoding: str = "bias",
    form: str | None = None,
    uniform_weight: Number = UNIFORM_WEIGHT,
    sharpness: Number | None = None,
    num_heads: str | None = None,
    head_dim: SupportsIndex | None = None,
    epsilon: float | None = None,
    border: str = "zeros",
) -> HeadOptions:
    """Read the options of `conv_to_attention`, and refuse what does not go together.

    Args:
        dtype: That of the kernel.
        score_dtype: The one in which softmax runs.

    Raises:
        ValueError: As `conv_to_attention` says.

    >>> read_options(jnp.float32, jnp.float32).exact
    True
    >>> read_options(jnp.float32, jnp.float32, encoding="quadratic", sharpness=8.0).exact
    False
    """
    if not isinstance(encoding, str) or encoding not in CONSTRUCTIONS:
        raise ValueError(f"encoding={encoding!r}, but expected one of {', '.join(CONSTRUCTIONS)}")
    construction = CONSTRUCTIONS[encoding]
    exact = read_form(form, construction.exact is not None)
    if exact and construction.exact is None:
        raise ValueError(
            f"form='exact' with encoding={encoding!r}, which is exact only as its sharpness goes "
            "to infinity; use encoding='bias' or 'scalar', or form='limit'"
        )
    register = _read_border(border, encoding, exact)
    if sharpness is not None:
        if exact:
            raise ValueError(
                f"sharpness={sharpness} belongs to the limit form of encoding={encoding!r}, but "
                "the exact form was asked for; pass form='limit' or leave sharpness out"
            )
        _require_positive(sharpness, "sharpness", score_dtype)
    require_uniform_weight(uniform_weight, score_dtype)
    if not (exact and construction.has_uniform_weight) and _is_set(uniform_weight):
        raise ValueError(
            f"uniform_weight={uniform_weight} was given, but only the exact form of "
            "encoding='bias' has one; leave it out, or take that form"
        )
    width = None if head_dim is None else as_integer(head_dim, "head_dim")
    if epsilon is not None:
        if num_heads is None or width is None or exact:
            raise ValueError(
                f"epsilon={epsilon}, but only the limit form of the fewest narrow heads takes one: "
                "give head_dim, num_heads='min' and form='limit', or leave it out"
            )
        usable_epsilon(epsilon, dtype)
    if num_heads is not None:
        if num_heads != "min":
            raise ValueError(
                f"num_heads={num_heads!r}, but expected 'min' or None (one head for each offset); "
                "for a number of heads use approximate_conv"
            )
        _require_usual(encoding, exact, uniform_weight, sharpness, width, border)
    fewest = num_heads is not None
    return HeadOptions(encoding, exact, uniform_weight, sharpness, fewest, width, epsilon, register)


def _read_border(border: Any, encoding: str, exact: bool) -> bool:
    """Whether a register stands for the zeros around the image."""
    if not isinstance(border, str) or border not in BORDERS:
        raise ValueError(
            f"border={border!r}, but expected 'zeros' (zero tokens around the image, or what "
            "padding says) or 'register' (one key of zero value instead)"
        )
    if BORDERS[border] and encoding not in (("bias",) if exact else ("bias", "quadratic")):
        form = "exact" if exact else "limit"
        raise ValueError(
            f"border='register' with encoding={encoding!r} in the {form} form, but expected "
            "'bias', or 'quadratic' in the limit form: of no other a score of the register is "
            "known; take one of these, or border='zeros'"
        )
    return BORDERS[border]


def read_form(form: Any, default: bool) -> bool:
    """Whether a form is the exact one.

    Args:
        default: For None.

    Raises:
        ValueError: For anything but "exact", "limit" and None.

    >>> read_form("exact", False), read_form(None, False)
    (True, False)
    """
    if form is None:
        return default
    if not isinstance(form, str) or form not in FORMS:
        raise ValueError(
            f"form={form!r}, but expected 'exact' (at finite parameters, where the encoding has "
            "such a form), 'limit' or None (the default)"
        )
    return bool(FORMS[form])


def _require_positive(parameter: Number, name: str, dtype: DTypeLike) -> None:
    """Refuse what is not one positive finite number in `dtype`, subnormal numbers included."""
    number, limits = _one_number(parameter, name, dtype), jnp.finfo(dtype)
    if number is not None and not float(limits.tiny) <= number <= float(limits.max):
        raise ValueError(
            f"{name}={parameter}, but expected a positive finite number in "
            f"{jnp.dtype(dtype).name}: at {name} ≤ 0 a head attends away from its target; leave "
            "it out for the value that gives one-hot attention"
        )


def require_uniform_weight(uniform_weight: Number, dtype: DTypeLike) -> None:
    """Refuse an ε that is no number between 0 and 1 in `dtype`, or so small that N/ε overflows."""
    number, limits = _one_number(uniform_weight, "uniform_weight", dtype), jnp.finfo(dtype)
    least = float(limits.tiny) / float(limits.eps)
    if number is not None and not least <= number < 1:
        raise ValueError(
            f"uniform_weight={uniform_weight}, but expected a number strictly between 0 and 1 in "
            f"{jnp.dtype(dtype).name}, and not below {least:.1e}; 0.5 is the default"
        )


def _one_number(parameter: Number, name: str, dtype: DTypeLike) -> float | None:
    """A parameter rounded to `dtype`, or None if it is traced and cannot be looked at."""
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


def _is_set(uniform_weight: Number) -> bool:
    return isinstance(uniform_weight, Array) or uniform_weight != UNIFORM_WEIGHT


def _require_usual(
    encoding: str,
    exact: bool,
    uniform_weight: Number,
    sharpness: Number | None,
    head_dim: int | None,
    border: str,
) -> None:
    """Refuse what the layers of the fewest heads do not have."""
    unusual = {
        f"encoding={encoding!r}": (encoding != "bias", "'bias'"),
        f"uniform_weight={uniform_weight}": (_is_set(uniform_weight), str(UNIFORM_WEIGHT)),
        f"sharpness={sharpness}": (sharpness is not None, "None"),
        "form='limit'": (not exact and head_dim is None, "'exact'"),
        f"border={border!r}": (border != "zeros", "'zeros'"),
    }
    for option, (is_unusual, expected) in unusual.items():
        if is_unusual:
            raise ValueError(
                f"{option} with num_heads='min', but expected {expected}: its heads are mixtures "
                "of offsets, at finite scores; leave it out"
            )
