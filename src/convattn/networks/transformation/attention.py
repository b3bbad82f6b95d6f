"""Attention in the place of a convolution: which form it takes, its layer, its outputs."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, SupportsIndex

import jax
import jax.numpy as jnp
from jax import Array, lax

from convattn.constructions.conversion import conv_to_attention
from convattn.constructions.options import BORDERS, UNIFORM_WEIGHT
from convattn.constructions.tied import tied_layer
from convattn.encodings.layer import AttentionLayer
from convattn.fast.grouped import grouped_attention
from convattn.fast.selection import BACK_ENDS
from convattn.networks.transformation.contents import SCOPE
from convattn.networks.transformation.convolution import Convolution
from convattn.networks.transformation.evaluation import COMPILE_QUICKLY
from convattn.networks.transformation.report import NUMBERS
from convattn.operators.arrays import is_traced
from convattn.operators.integers import as_integer

KEPT = "pointwise='keep': it mixes no pixels"
NOT_CHOSEN = "`where` leaves it out"
_UNSUITABLE = ("windowed", "dot_product")  # it leaves out weights; it needs content scores


@dataclass(frozen=True)
class ConversionOptions:
    """The form of attention that convolutions take, and which of them take it.

    Attributes:
        where, form, uniform_weight, sharpness, num_heads, head_dim, pointwise, backend, strict,
            border: As for `with_attention`.
    """

    where: Callable[[Convolution], Any] | None = None
    form: str | None = None
    uniform_weight: float | Array = UNIFORM_WEIGHT
    sharpness: float | Array | None = None
    num_heads: str | None = None
    head_dim: SupportsIndex | None = None
    pointwise: str = "attention"
    backend: str = "auto"
    strict: bool = False
    border: str = "zeros"

    def __post_init__(self) -> None:
        """Check what can be checked without a kernel.

        Raises:
            ValueError: For an option that is none of its values.
        """
        choices: dict[str, tuple[Any, ...]] = {
            "form": (None, "exact", "limit"),
            "num_heads": (None, "min"),
            "pointwise": ("attention", "keep"),
            "backend": ("auto", *(name for name in BACK_ENDS if name not in _UNSUITABLE)),
            "strict": (False, True),
            "border": tuple(BORDERS),
        }
        for name, expected in choices.items():
            if getattr(self, name) not in expected:
                raise ValueError(
                    f"{name}={getattr(self, name)!r}, but expected one of "
                    f"{', '.join(map(repr, expected))}"
                )
        if self.where is not None and not callable(self.where):
            raise ValueError(
                f"where={self.where!r}, but expected a function that takes a convolution and says "
                "whether it is to be attention"
            )
        if self.sharpness is not None and self.form != "limit":
            raise ValueError(
                f"sharpness={self.sharpness!r}, but the exact form has none: leave it out, or give "
                "form='limit'"
            )
        if self.head_dim is not None:
            as_integer(self.head_dim, "head_dim", 1)
        if not is_number(self.uniform_weight, 1):
            raise ValueError(
                f"uniform_weight={self.uniform_weight!r}, but expected a number in (0, 1)"
            )
        if self.form == "limit" and self.uniform_weight is not UNIFORM_WEIGHT:
            raise ValueError(
                f"uniform_weight={self.uniform_weight!r}, but the limit form has none: leave it "
                "out, or leave out form"
            )
        if self.sharpness is not None and not is_number(self.sharpness, math.inf):
            raise ValueError(
                f"sharpness={self.sharpness!r}, but expected a positive finite number; leave it "
                "out for attention that is one-hot"
            )

    def with_backend(self, backend: str) -> "ConversionOptions":
        """The same with another back end."""
        return replace(self, backend=backend)

    def reason_to_keep(self, convolution: Convolution) -> str | None:
        """Why a convolution stays as it is; None if it becomes attention."""
        if self.where is not None and not self.where(convolution):
            return NOT_CHOSEN
        if self.pointwise == "keep" and convolution.is_pointwise:
            return KEPT
        return convolution.reason

    def layer(self, convolution: Convolution, kernel: Array) -> AttentionLayer:
        """The layer that is a convolution, from the channels of one group to those of all.

        Args:
            kernel: `[*K, in/groups, out]`.

        Raises:
            ValueError: As `conv_to_attention` does, with the name of the convolution.
        """
        limit = self.form == "limit"
        if self.num_heads == "min" and is_traced(kernel):
            raise ValueError(
                f"{convolution}: num_heads='min', but its kernel has no values when the function "
                "is traced, as in a scan, or where it is an argument or computed under jit; leave "
                "out num_heads, or leave the convolution out with where="
            )
        options: dict[str, Any] = {"sharpness": self.sharpness}
        if not limit:
            options = {"uniform_weight": self.uniform_weight}
        try:
            return conv_to_attention(
                kernel,
                form="limit" if limit else "exact",
                head_dim=self.head_dim,
                num_heads=self.num_heads,
                stride=convolution.stride,
                dilation=convolution.dilation,
                padding=convolution.padding,
                border=self.border,
                **options,
            )
        except ValueError as error:
            raise ValueError(f"{convolution}: {error}") from error

    def tied_layer(self, convolution: Convolution, kernel: Array) -> AttentionLayer:
        """The same, its uniform head tied to the others where it has one.

        Raises:
            ValueError: As `layer` does.
        """
        exact = self.form != "limit" and self.head_dim is None and self.num_heads is None
        if not exact or self.border != "zeros" or self.backend not in ("auto", "shift"):
            return self.layer(convolution, kernel)
        sizes = convolution.stride, convolution.dilation, convolution.padding
        try:
            return tied_layer(kernel, self.uniform_weight, *sizes)
        except ValueError as error:
            raise ValueError(f"{convolution}: {error}") from error

    def outputs(
        self, convolution: Convolution, layer: AttentionLayer, images: Array, once: bool = False
    ) -> Array:
        """What the layer makes of the images, in the layout of the function.

        Args:
            images: The first operand of the convolution.
            once: Whether it is run here, once, rather than a part of what is compiled.
        """
        precision = convolution.parameters["precision"]
        if precision is None and jax.default_backend() != "cpu":
            precision = lax.Precision.DEFAULT
        with jax.named_scope(SCOPE):
            attended = (attend_once if once else attend)(
                layer,
                convolution.images(images),
                groups=convolution.groups,
                backend=self.backend,
                precision=precision,
            )
        return convolution.result(attended)


def is_number(value: Any, upper: float) -> bool:
    """Whether an option is one real number in (0, upper), or one that is traced."""
    if is_traced(value):
        return True
    kind = jnp.result_type(value) if isinstance(value, NUMBERS) else bool
    if jnp.ndim(value) or not (
        jnp.issubdtype(kind, jnp.floating) or jnp.issubdtype(kind, jnp.integer)
    ):
        return False
    return 0 < float(value) < upper


# One program for all convolutions of the same sizes.
compiled = partial(jax.jit, static_argnames=("groups", "backend", "precision"))
attend = compiled(grouped_attention)
attend_once = compiled(grouped_attention, compiler_options=COMPILE_QUICKLY)
