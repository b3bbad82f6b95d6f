"""Rotary encodings (RoPE), axial and mixed, of queries and keys that do not look at the content.

Each pair j of coordinates of a head's query u is turned by the angle ω_j·q and the same pair of its
key w by ω_j·k, for tokens at q and k. As complex numbers u_j e^(iω_j·q) and w_j e^(iω_j·k) they
contribute

    Re(u_j e^(iω_j·q) · conj(w_j e^(iω_j·k))) = a_j cos(ω_j·δ) + b_j sin(ω_j·δ),   δ = k - q,

with a_j + ib_j = u_j conj(w_j). Where u and w are the same for all tokens, as biases are, the score
depends on the shift alone. ‖u‖‖w‖ is at least Σ_j |a_j + ib_j|, and u, w exist that attain it.

Frequencies are held in *turns* per token, ω_j/2π. RoFormer turns sequences at 10000^(-2j/d) radians
per token; on images a pair turns with one axis ("axial", see `AxialRotaryEncoding`) or with a
direction of its own that each head learns ("mixed").
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Num

from convattn.encodings.base import RelativePosition, check_axes, score_dtype
from convattn.encodings.majorants import magnitude
from convattn.operators.attention import HIGHEST


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class RotaryEncoding(RelativePosition):
    """Scores Σ_j a_hj cos(2π f_hj·δ) + b_hj sin(2π f_hj·δ).

    Attributes:
        turns: f_hj = ω_hj/2π: turns of a pair for each token along each axis.
        cosine: a_hj, the real part of u_hj conj(w_hj).
        sine: b_hj, the imaginary part.
        largest_shift: On each axis, the largest |δ| for which the angles were chosen; a grid with
            larger shifts is refused. () for none.

    Source: Su et al. 2021 (RoFormer, arXiv:2104.09864), eq. 16; Heo et al. 2024
    (arXiv:2403.13298), axial and mixed frequencies.

    >>> encoding = RotaryEncoding(*(jnp.array([x]) for x in ([[0.25]], [2.0], [1.0])))
    >>> encoding.shift_scores(np.array([[0], [1], [2], [5]]), 9).round(5).tolist()
    [[2.0, 1.0, -2.0, 1.0]]
    """

    turns: Num[Array, "heads pairs axes"]
    cosine: Num[Array, "heads pairs"]
    sine: Num[Array, "heads pairs"]
    largest_shift: tuple[int, ...] = field(default=(), metadata={"static": True})

    def shift_scores(
        self, shifts: Int[np.ndarray, "shifts axes"], number_of_keys: int | Array
    ) -> Float[Array, "heads shifts"]:
        """Whole turns are dropped before the angle is formed: exact where turns are dyadic."""
        check_axes(shifts, self.turns.shape[-1], "RotaryEncoding")
        self.require_within(shifts)
        dtype = score_dtype(self.turns, self.cosine, self.sine)
        turned = jnp.einsum(
            "hja,sa->hjs", self.turns.astype(dtype), jnp.asarray(shifts, dtype), precision=HIGHEST
        )
        angles = 2 * math.pi * (turned - jax.lax.stop_gradient(jnp.round(turned)))
        amplitudes = self.cosine.astype(dtype), self.sine.astype(dtype)
        waves = amplitudes[0][..., None] * jnp.cos(angles) + amplitudes[1][..., None] * jnp.sin(
            angles
        )
        return waves.sum(axis=1)

    def require_within(self, shifts: Int[np.ndarray, "shifts axes"]) -> None:
        """Refuse shifts that the angles do not tell apart."""
        widest = tuple(np.abs(shifts).max(axis=0, initial=0).tolist())
        if any(a > b for a, b in zip(widest, self.largest_shift, strict=False)):
            raise ValueError(
                f"shifts up to {widest} occur, but expected at most {self.largest_shift}, beyond "
                "which the angles of this RotaryEncoding repeat; cut the image, take larger "
                "patches, or use another encoding"
            )

    def check(self) -> None:
        """Refuse parts whose pairs or axes differ in number.

        Raises:
            ValueError: As described above, and as `Encoding.check` does.
        """
        super().check()
        pairs = {part.shape[1] for part in (self.turns, self.cosine, self.sine)}
        axes = self.turns.shape[2]
        if len(pairs) > 1 or len(self.largest_shift) not in (0, axes):
            raise ValueError(
                f"encoding.turns.shape={self.turns.shape}, cosine.shape={self.cosine.shape}, "
                f"sine.shape={self.sine.shape}, largest_shift={self.largest_shift}, but expected "
                "one number of pairs and of axes"
            )

    def shift_majorant(
        self, shifts: Int[np.ndarray, "shifts axes"], number_of_keys: int
    ) -> Float[Array, "heads shifts"]:
        """The sum of the magnitudes of its terms at each shift."""
        # An angle is off by γ_n x, and so is its cosine: 1 + x bounds a wave's error, and has the
        # derivative that its slope's error needs when x²/2 is added.
        turns = magnitude(self.turns)
        turned = jnp.einsum("hja,sa->hjs", turns, jnp.asarray(np.abs(shifts), turns.dtype))
        angles = 2 * np.pi * turned
        height = magnitude(self.cosine) + magnitude(self.sine)
        return (height[..., None] * (1 + angles + angles**2 / 2)).sum(axis=1)

    @property
    def roundings(self) -> int:
        """Those of a score beyond 16."""
        return 16 + self.turns.shape[1] + 2 * self.turns.shape[2]


def axial_turns(
    pairs: int, axes: int = 1, *, base: float | None = None
) -> Float[np.ndarray, "pairs axes"]:
    """Frequencies in turns per token: `pairs` of them for each axis, which turn with it alone.

    Args:
        pairs: On each axis, the number n of pairs.
        axes: The number of axes.
        base: Angles base^(-j/n) radians per token, j = 0, …, n - 1: 10000 in RoFormer, 100 on
            images (Heo et al.). None: half a turn, a quarter, …, 2^-n, of which any two of 2^n
            tokens in a row differ by half a turn in some pair.

    Raises:
        ValueError: For fewer than one pair or axis, and a base that is not above one.

    >>> axial_turns(2, 2).tolist()
    [[0.5, 0.0], [0.25, 0.0], [0.0, 0.5], [0.0, 0.25]]
    >>> (2 * np.pi * axial_turns(4, base=10000.0)).ravel().round(6).tolist()
    [1.0, 0.1, 0.01, 0.001]
    """
    if pairs < 1 or axes < 1 or (base is not None and not 1 < base < math.inf):
        raise ValueError(
            f"pairs={pairs}, axes={axes}, base={base}, but expected at least one pair and one "
            "axis, and a base above one or None"
        )
    numbers = np.arange(pairs)
    line = 2.0 ** -(numbers + 1) if base is None else base ** (-numbers / pairs) / (2 * np.pi)
    return np.einsum("j,ab->ajb", line, np.eye(axes)).reshape(-1, axes)


def rotary_heads(
    turns: Num[Array, "pairs axes"] | np.ndarray,
    targets: Sequence[Sequence[int]],
    amplitude: float | Array,
    largest_shift: tuple[int, ...] = (),
) -> RotaryEncoding:
    """Heads with the scores a Σ_j cos(2π f_j·(δ - Δ_h)), whose largest value is at Δ_h.

    Their queries are u_j = √a e^(iω_j·Δ_h), their keys w_j = √a.

    >>> encoding = rotary_heads(axial_turns(2), [[1]], 3.0)
    >>> encoding.shift_scores(np.array([[-1], [0], [1], [2]]), 4).round(4).tolist()
    [[0.0, -3.0, 6.0, -3.0]]
    """
    scale = jnp.asarray(amplitude)
    dtype = score_dtype(scale)
    turned = np.asarray(targets, np.float64) @ np.asarray(turns, np.float64).T
    angles = 2 * np.pi * (turned - np.round(turned))
    heads = jnp.broadcast_to(jnp.asarray(turns, dtype), (len(angles), *np.shape(turns)))
    cosine, sine = (scale * jnp.asarray(function(angles), dtype) for function in (np.cos, np.sin))
    return RotaryEncoding(heads, cosine, sine, largest_shift)
