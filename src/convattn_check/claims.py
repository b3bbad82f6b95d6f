"""What each claim demands of its certificate, beyond that the mathematics is right.

A certificate may be sound and still say nothing about the claim on its label. This table is what
ties the two together: one row for each claim and kind, and a claim or kind that is not here is
rejected.

Some figures of the papers are no demands: they follow from the offsets, which are recomputed. With
P = 1 there are prod(K) of them; for odd K and dilation 1 there are 2m + 1 on an axis, where
m = ⌈(K-1)/(2P)⌉; so for 3 ≤ K ≤ 2P + 1 there are 9 on two axes, and for K = 1 there is 1.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from convattn_check.formulas import FORMULAS
from convattn_check.reject import Reject, require


@dataclass
class Facts:
    """What a certificate says about itself; which fields have a meaning depends on the kind."""

    kind: str
    claim: str
    kernel: tuple[int, ...] = ()
    patch: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()
    channels: tuple[int, ...] = ()
    heads: int = 0
    offsets: int = 0
    regime: str = ""
    family: str = ""
    score: str = ""
    alpha: int = 0
    exponent: int = 0
    conclusion: str = ""
    nodes: int = 0
    boundary: str = ""
    unit_shifts: bool = False
    dimension: int = 0
    head_dimension: int = 0
    width: int = 0
    layers: tuple[int, ...] = ()
    sides: tuple[int, ...] = ()
    split: int = 0
    room: bool = False
    group: str = ""

    @property
    def size(self) -> str:
        """The kernel size as text: 3x5."""
        return "x".join(map(str, self.kernel))

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in vars(self).items() if value)


@dataclass(frozen=True)
class Demand:
    """One condition: its code, what it says, and when it holds."""

    code: str
    text: str
    holds: Callable[[Facts], bool]


def _claim(text: str, holds: Callable[[Facts], bool]) -> Demand:
    return Demand("claim", text, holds)


def _spread(facts: Facts) -> bool:
    """Whether a dilation shows: with K = 1 on its axis it does not."""
    return any(d > 1 and k > 1 for d, k in zip(facts.dilation, facts.kernel, strict=True))


LIMIT = _claim("regime 'limit'", lambda f: f.regime == "limit")
FINITE = _claim("regime 'finite'", lambda f: f.regime == "finite")
GIVEN = _claim("score 'given'", lambda f: f.score == "given")
BIAS = _claim("score 'bias'", lambda f: f.score == "bias")
QUADRATIC = _claim("score 'quadratic'", lambda f: f.score == "quadratic")
ABSOLUTE = _claim("score 'absolute'", lambda f: f.score == "absolute")
ENUMERATED = _claim("score 'enumerated'", lambda f: f.score == "enumerated")
POLYGON = _claim("score 'polygon'", lambda f: f.score == "polygon")
LEAKY = _claim("family 'leaky_one_hot'", lambda f: f.family == "leaky_one_hot")
POWERS = _claim("family 'scalar_power'", lambda f: f.family == "scalar_power")

PIXELS = _claim("patch size 1", lambda f: max(f.patch) == 1)
ODD = _claim("an odd kernel", lambda f: all(k % 2 for k in f.kernel))
SEQUENCE = _claim("one axis", lambda f: len(f.kernel) == 1)
IMAGE = _claim("two axes", lambda f: len(f.kernel) == 2)
PLAIN = _claim("dilation 1 and stride 1", lambda f: max(f.dilation + f.stride) == 1)
STRIDED = _claim("some stride above 1", lambda f: max(f.stride) > 1)
WIDE = _claim("some K above 1", lambda f: max(f.kernel) > 1)
DILATED = _claim("a dilation above 1 on an axis with K above 1", _spread)
VARIANT = _claim(
    "some stride above 1, or a dilation above 1 on an axis with K above 1",
    lambda f: max(f.stride) > 1 or _spread(f),
)
SMALL = _claim(
    "3 <= K <= 2P + 1",
    lambda f: all(3 <= k <= 2 * p + 1 for k, p in zip(f.kernel, f.patch, strict=True)),
)
POINT = _claim("K = 1", lambda f: max(f.kernel) == 1)
SQUARE = _claim(
    "K and P alike on both axes", lambda f: len({*zip(f.kernel, f.patch, strict=True)}) == 1
)
PATCHES = _claim("P >= 2", lambda f: min(f.patch) >= 2)

FOUR = _claim("at least 4 offsets", lambda f: f.offsets >= 4)

ONE_EACH = Demand("heads", "as many heads as offsets", lambda f: f.heads == f.offsets)
ONE_MORE = Demand("heads", "one head more than offsets", lambda f: f.heads == f.offsets + 1)
NINE = Demand("heads", "9 heads", lambda f: f.heads == 9)
FULL = Demand(
    "heads",
    "min(prod K, D_in * D_out) heads",
    lambda f: f.heads == min(prod(f.kernel), prod(f.channels)),
)
SEVERAL = Demand("heads", "at least 2 heads", lambda f: f.heads >= 2)
SPANNING = Demand("heads", "at least K heads", lambda f: f.heads >= prod(f.kernel))
FLOAT32 = _claim(
    "alpha >= 46 and exponent >= -149 if the weight survives (in float32), exponent <= -126 if not",
    lambda f: (
        f.exponent <= -126 if f.conclusion == "vanishes" else f.alpha >= 46 and f.exponent >= -149
    ),
)

SEVERAL_NODES = _claim("at least two nodes", lambda f: f.nodes >= 2)
UNIT_SHIFTS = _claim("the shifts +1 and -1 on each axis, and no others", lambda f: f.unit_shifts)
COMMUTANT = _claim(
    "dimension 1 on the bare grid, as many as nodes on a torus",
    lambda f: f.dimension == (1 if f.boundary == "bare" else f.nodes),
)


def _generic(facts: Facts) -> int:
    """min((2m+1)^axes, (2P-1)^axes * D_in * D_out), for odd K and sizes alike on all axes."""
    kernel, patch, axes = facts.kernel[0], facts.patch[0], len(facts.kernel)
    reach = -(-(kernel // 2) // patch)
    offsets, rows = (2 * reach + 1) ** axes, (2 * patch - 1) ** axes
    return min(offsets, rows * prod(facts.channels))


GENERIC = Demand(
    "heads",
    "min((2m+1)^axes, (2P-1)^axes * D_in * D_out) heads",
    lambda f: f.heads == _generic(f),
)
LIFTED = _claim("a kernel lifted from p4 or p4m", lambda f: f.group != "")


def _orbits(facts: Facts) -> int:
    """The sum of d * min(m, n * d) over the irreducible representations, and one."""
    (half, odd), turns_only = divmod(facts.kernel[0], 2), facts.group == "p4"
    filters = prod(facts.channels) // (4 if turns_only else 8)
    turned, free, axis = half * (half + odd), half * (half - 1) // 2, odd * half
    if turns_only:
        return 1 + min(turned + odd, filters) + 3 * min(turned, filters)
    lines = (free + half + axis + odd, free, free + axis, free + half)
    return 1 + sum(min(m, filters) for m in lines) + 2 * min(turned, 2 * filters)


ORBITS = Demand(
    "heads",
    "the sum of d * min(m, n * d) over the group's irreducible representations, and 1, heads",
    lambda f: f.heads == _orbits(f),
)
COMPOSED = Demand(
    "heads",
    "as many heads as offsets on the first and the second axis, one more at finite scores",
    lambda f: f.layers == (f.sides[0], f.sides[1] + (f.regime == "finite")),
)
ROOM = Demand("tokens", "more tokens than the offsets reach on every axis", lambda f: f.room)
BELOW = Demand(
    "heads",
    "tokens - reach - 1 heads",
    lambda f: f.heads == f.nodes - f.offsets // 2 - 1,
)
TILES = _claim(
    "K = 2Pm + 1 with m >= P >= 2, and several channel pairs",
    lambda f: (
        f.kernel[0] % (2 * f.patch[0]) == 1
        and f.kernel[0] > 2 * f.patch[0] ** 2
        and min(f.patch) >= 2
        and prod(f.channels) >= 2
    ),
)
NARROW = _claim("heads narrower than the centre's map", lambda f: f.head_dimension < f.width)

SHARED = Demand(
    "heads", "fewer heads than one-hot heads whose maps are split", lambda f: f.heads < f.split
)

# What a kernel of the papers is: their Δ is {-⌊K/2⌋, …, ⌊K/2⌋}, which are K taps only for odd K.
PAPER = (IMAGE, ODD, WIDE)
TABLE: dict[tuple[str, str], tuple[Demand, ...]] = {
    ("equality", "C20.lemma1"): (LIMIT, GIVEN, PIXELS, *PAPER, PLAIN, ONE_EACH),
    ("equality", "C20.theorem1"): (LIMIT, QUADRATIC, *PAPER, PLAIN, ONE_EACH),
    ("equality", "C20.padding"): (LIMIT, QUADRATIC, PIXELS, *PAPER, PLAIN, ONE_EACH),
    ("equality", "C20.stride"): (LIMIT, QUADRATIC, PIXELS, *PAPER, STRIDED, ONE_EACH),
    ("equality", "C20.dilation"): (LIMIT, QUADRATIC, PIXELS, *PAPER, DILATED, ONE_EACH),
    ("equality", "C20.sequence"): (LIMIT, QUADRATIC, PIXELS, SEQUENCE, ODD, WIDE, PLAIN, ONE_EACH),
    ("equality", "L21.theorem1"): (LIMIT, BIAS, *PAPER, PLAIN, ONE_EACH),
    ("equality", "L21.wo"): (LIMIT, BIAS, *PAPER, PLAIN, ONE_EACH),
    ("equality", "L21.cor3"): (LIMIT, BIAS, *PAPER, PLAIN, PIXELS, ONE_EACH),
    ("equality", "L21.cor4"): (LIMIT, BIAS, *PAPER, PLAIN, SMALL, ONE_EACH),
    ("equality", "L21.variants"): (LIMIT, BIAS, *PAPER, VARIANT, ONE_EACH),
    ("equality", "L21.absolute"): (LIMIT, ABSOLUTE, *PAPER, PLAIN, ONE_EACH),
    ("equality", "L21.theorem6"): (LIMIT, BIAS, IMAGE, PATCHES, PLAIN, POINT, ONE_EACH),
    ("equality", "S.finite"): (FINITE, LEAKY, ONE_MORE),
    ("equality", "S.pad"): (FINITE, LEAKY, WIDE, ONE_MORE),
    ("equality", "S.dp1"): (FINITE, POWERS, ONE_MORE),
    ("equality", "S.dp2"): (LIMIT, ENUMERATED, ONE_EACH),
    ("equality", "S.sharpness"): (FINITE, LEAKY, POINT, ONE_MORE),
    ("equality", "S.polygon"): (LIMIT, POLYGON, FOUR, ONE_EACH),
    ("equality", "S.network"): (FINITE, LEAKY, IMAGE, ODD, PIXELS, ONE_MORE),
    ("lower_bound", "L21.theorem5"): (IMAGE, PIXELS, ODD, FULL, SEVERAL),
    ("lower_bound", "L21.theorem6"): (IMAGE, SQUARE, PATCHES, ODD, SMALL, NINE),
    ("lower_bound", "S.heads"): (SQUARE, ODD, GENERIC, SEVERAL),
    ("lower_bound", "S.depth"): (SQUARE, ODD, WIDE, GENERIC, SEVERAL),
    ("lower_bound", "S.tiles"): (IMAGE, SQUARE, ODD, TILES, GENERIC),
    ("two_layers", "S.depth"): (WIDE, COMPOSED, ROOM),
    ("exponentials", "S.barrier"): (ODD, BELOW),
    ("head_dimension", "S.headdim"): (ODD, WIDE, NARROW),
    ("narrow_heads", "S.width"): (ODD, WIDE, NARROW, SHARED),
    ("lower_bound", "S.content"): (SEVERAL,),
    ("kernel_heads", "S.kernel"): (SEVERAL,),
    ("kernel_heads", "S.group"): (LIFTED, ORBITS),
    ("approximation", "S.approx"): (SEVERAL,),
    ("no_shared_map", "C20.lemma3"): (ODD, SPANNING),
    ("no_shared_map", "S.lemma3"): (ODD, SPANNING),
    ("rank", "C20.rank"): (),
    ("saturation", "C20.alpha46"): (FLOAT32,),
    ("border", "C20.padding"): (IMAGE, ODD, WIDE, PIXELS),
    ("border", "C20.theorem1"): (IMAGE, ODD, WIDE, PIXELS),
    ("border", "L21.theorem1"): (IMAGE, ODD, WIDE),
    ("border", "S.padding"): (),
    ("total_variation", "S.saturation"): (),
    ("commutant", "A19.equivariance"): (SEVERAL_NODES, COMMUTANT, UNIT_SHIFTS),
    **{("identity", claim): () for claim, _ in FORMULAS},
}
CLAIMS = frozenset(claim for _, claim in TABLE)


def require_claim(facts: Facts) -> None:
    """Reject a certificate that does not support its claim."""
    if (facts.kind, facts.claim) not in TABLE:
        raise Reject("claim", f"no certificate of the kind {facts.kind!r} supports {facts.claim}")
    for demand in TABLE[facts.kind, facts.claim]:
        require(
            demand.holds(facts), demand.code, f"{facts.claim} needs {demand.text}; given {facts}"
        )
