"""Attention in the place of a convolution: which form it takes, its layer, its outputs."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, SupportsIndex

import jax
from jax import Array, lax

from convattn.constructions.conversion import conv_to_attention
from convattn.encodings.layer import AttentionLayer
from convattn.fast.grouped import grouped_attention
from convattn.fast.selection import BACK_ENDS
from convattn.networks.transformation.convolution import Convolution
from convattn.networks.transformation.evaluation import SCOPE
from convattn.operators.integers import as_integer

KEPT = "pointwise='keep': it mixes no pixels"
NOT_CHOSEN = "`where` leaves it out"


@dataclass(frozen=True)
class AttentionOptions:
    """The form of attention that convolutions take, and which of them take it.

    Attributes:
        where, form, uniform_weight, sharpness, num_heads, head_dim, pointwise, backend, strict: As
            for `with_attention`.
    """

    where: Callable[[Convolution], Any] | None = None
    form: str | None = None
    uniform_weight: float | Array = 0.5
    sharpness: float | Array | None = None
    num_heads: str | None = None
    head_dim: SupportsIndex | None = None
    pointwise: str = "attention"
    backend: str = "auto"
    strict: bool = False

    def __post_init__(self) -> None:
        """Check what can be checked without a kernel.

        Raises:
            ValueError: For an option that is none of its values.
        """
        choices: dict[str, tuple[Any, ...]] = {
            "form": (None, "exact", "limit"),
            "num_heads": (None, "min"),
            "pointwise": ("attention", "keep"),
            "backend": ("auto", *BACK_ENDS),
            "strict": (False, True),
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
        if isinstance(self.uniform_weight, float | int) and not 0 < self.uniform_weight < 1:
            raise ValueError(
                f"uniform_weight={self.uniform_weight}, but expected a number in (0, 1)"
            )

    def with_backend(self, backend: str) -> "AttentionOptions":
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
        options = {"logit": self.sharpness} if limit else {"leak": self.uniform_weight}
        try:
            return conv_to_attention(
                kernel,
                exact=not limit,
                head_dim=self.head_dim,
                heads=None if self.num_heads is None else "fewest",
                stride=convolution.stride,
                dilation=convolution.dilation,
                padding=convolution.padding,
                **options,
            )
        except ValueError as error:
            raise ValueError(f"{convolution}: {error}") from error

    def outputs(self, convolution: Convolution, layer: AttentionLayer, images: Array) -> Array:
        """What the layer makes of the images, in the layout of the function.

        Args:
            images: The first operand of the convolution.
        """
        precision = convolution.parameters["precision"]
        if precision is None and jax.default_backend() != "cpu":
            precision = lax.Precision.DEFAULT
        with jax.named_scope(SCOPE):
            attended = attend(
                layer,
                convolution.images(images),
                groups=convolution.groups,
                backend=self.backend,
                precision=precision,
            )
        return convolution.result(attended)


# One program for all convolutions of the same sizes.
attend = partial(jax.jit, static_argnames=("groups", "backend", "precision"))(grouped_attention)
