"""N.rope: rotary heads that look at one offset, on images of up to 1024 tokens a side.

**Claim.** With the frequencies 2^-1, …, 2^-n turns per token on each of D axes, T offsets and the
scores a Σ_j cos(2π f_j·(δ - Δ_h)), head h is ahead at Δ_h of every other key by at least 2a, on
every grid of at most 2^n keys a side (the ring counted). ‖u‖‖w‖ = a·n·D.

**Proof.** Two keys of the grid differ by d = δ - Δ_h with |d| < 2^n on each axis. Where d ≠ 0 on
some axis, let 2^s be the largest power of two that divides it there: s < n, and the pair that turns
2^-(s+1) a token on that axis has turned an odd number of half turns, so its cosine is -1 in place
of 1. No other cosine exceeds its value 1 at d = 0. At d = 2^(n-1) on one axis no other pair has
turned but by whole turns, so the lead is 2a exactly. ∎

No finite number of pairs serves every size: among the first N multiples of P angles there is one
that is within N^(-1/P) turns of 0 for all of them (Dirichlet), so that the lead falls to zero. The
construction takes n = 10 and a = α/2, so that α is the lead, and lets the encoding refuse larger
grids. It takes a ring as wide as the kernel reaches; on the bare grid a head whose target is
outside attends to keys that differ from it by multiples of large powers of two, which is no border
that convolutions have.
"""

import jax.numpy as jnp
from jax import Array
from jaxtyping import Num

from convattn.constructions.geometry import ConvolutionGeometry
from convattn.encodings.axial_rotary import AxialRotaryEncoding
from convattn.encodings.base import score_dtype
from convattn.encodings.rotary import axial_turns, rotary_heads
from convattn.operators.roundoff import one_hot_sharpness

PAIRS = 10  # on each axis; 2^10 keys a side are told apart


def rotary_construction(
    maps: Num[Array, "offsets patch_in patch_out"],
    geometry: ConvolutionGeometry,
    alpha: Num[Array, ""] | float | None = None,
) -> tuple[AxialRotaryEncoding, Num[Array, "heads patch_in patch_out"]]:
    """Frequencies, amplitudes and the map of each head.

    Raises:
        ValueError: For a kernel that reaches over 1024 tokens and more.

    Source: N.rope of this project's ledger.
    """
    dtype = score_dtype(maps)
    sharpness = one_hot_sharpness(maps.dtype) if alpha is None else alpha
    largest = tuple(2**PAIRS - 1 - max(pair) for pair in geometry.ring)
    if min(largest) < max(map(max, geometry.ring)):
        raise ValueError(
            f"the kernel reaches over {geometry.ring} tokens, but encoding='rotary' tells "
            f"{2**PAIRS} tokens a side apart; use encoding='bias', or larger patches"
        )
    amplitude = jnp.asarray(sharpness, dtype) / 2
    axes = [
        rotary_heads(axial_turns(PAIRS), [[step] for step in steps], amplitude)
        for steps in zip(*geometry.offsets, strict=True)
    ]
    turns = tuple(axis.turns[..., 0] for axis in axes)
    cosine, sine = tuple(axis.cosine for axis in axes), tuple(axis.sine for axis in axes)
    return AxialRotaryEncoding(turns, cosine, sine, largest), maps
