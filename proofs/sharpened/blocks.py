"""S.blocks: a transformer of L blocks needs (H_1 + 1)⋯(H_L + 1) ≥ rank F to be a convolution.

Claimed. For transformer blocks to be a convolution, the product over the blocks of the number of
heads plus one has to be at least the rank of the flattened kernel.
True. It has to, whatever MLPs, LayerNorm and content do, if the network is smooth at an image of
equal tokens and positions are in the scores alone; not with a class token or added positions.

Printed. Not from a paper: our own result. S.depth has this for layers without content and with
nothing but linear maps between them; S.content for one layer with content, at the zero image.

Verified. A *block* maps tokens X to f(s(x_q) + Σ_h Σ_k A_h(X)_qk v_h(x_k)), where s, v_h and f are
maps of one token: s is the residual connection (or zero), v_h has LayerNorm, values and outputs of
head h in it, f the MLP with its own residual connection and LayerNorms, before or after. The rows
A_h(X) sum to one and may depend on the positions and on all tokens: relative biases, rotary
positions, content, masks. A *network* is a map of one token, blocks of H_1, …, H_L heads, and a map
of one token. Positions are in the scores alone, and all tokens are of the image: no class token,
no padding. (One such block is S.content, at any image of equal tokens and not only at zero.)

Take an image of which all tokens are equal, such that the A_h are continuous there, and the maps of
one token differentiable where it takes them, as with LayerNorm of ε > 0 and a smooth MLP. Let the
network have the derivative of a convolution there: for every offset δ there are tokens q and q + δ
such that the derivative of output q by token q + δ is the map M_δ; one query of which all offsets
are tokens is enough. Let ρ be the rank of F, whose columns are the M_δ.

(1) Π(H_l + 1) ≥ ρ, where a block without a residual connection counts H_l alone; in limits too, if
the derivatives at such images converge.

(2) If the scores are finite, some block has a head, ρ > 0 and some output does not change with some
token to first order, as with one outside its receptive field, Π(H_l + 1) ≥ ρ + 1.

(3) With positions added to the tokens, or with a class token, (1) is false.

For independent M_δ at the 27·27 = 729 offsets between 14 × 14 tokens three blocks of 12 heads, as
many as ViT-B's have, are necessary: 13² < 729 < 13³. (No query has all of these offsets. If all
queries are judged the window sums must be equal, as equal tokens give equal outputs, so that ρ is
729 - 195 = 534 at most; for such kernels three still.)

Nothing to repair.

Proof. The idea: where all tokens are equal, how attention moves does not matter.

Let all tokens be x. If v = v_h(x), every row gives Σ_k A_h(x)_qk v = v. So the output has equal
tokens again, and by induction every block sees equal tokens.

Let X(t) be a path from there whose tokens have derivatives D_k at t = 0. As rows sum to one,

    Σ_k A_h(X(t))_qk v_h(x_k(t)) - v = Σ_k A_h(X(t))_qk (v_h(x_k(t)) - v).

Divide by t > 0 and let t → 0: A_h is continuous, so the derivative is Σ_k A_h(x)_qk D_k V_h, with
the Jacobian V_h of v_h at x. No derivative of A_h is left.

So a block's derivative is that of a layer of H_l + 1 heads without content, one of them with the
attention I: D ↦ (D S + Σ_h A_h D V_h) J, where S and J, the Jacobians of s and f, are the same for
all tokens. Such layers compose as in S.depth (1), and the maps before and after are of one token:
the derivative is D ↦ Σ_g B_g D N_g with Π(H_l + 1) pairs (B_g, N_g), independent of q and k.

(1) Hence M_δ = Σ_g (B_g)_qk N_g with k = q + δ: F is a product through Π(H_l + 1) dimensions.
Matrices of at most that rank are a closed set.

(2) Were there exactly ρ pairs, the N_g would be independent, as they span the columns of F. Such a
token k has Σ_g (B_g)_qk N_g = 0, so that all (B_g)_qk = 0. But the pair of one head in one block
and residual connections elsewhere has (B_g)_qk = A_h(x)_qk > 0. (Blocks without a residual
connection have a head in every pair, and products of positive matrices are positive.)

(3) By the ranks below. ∎
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flint import arb, ctx, nmod_mat

from convattn.bounds.block_counts import count_blocks
from convattn_ledger import Claim, Evidence, Kind, Level, Run, Verdict, require
from convattn_ledger.bounds.saturation import upper
from convattn_ledger.evidence import certified, proved
from convattn_ledger.evidence.enclosures import ASSUMES

PRIME = 536870909  # below 2^29, so that sums of 16 products fit into 64 bits
GRID, CHANNELS, WIDTH, HEAD, HIDDEN = (3, 4), 4, 6, 4, 8
FAST_COMPILE = {"xla_backend_optimization_level": 0}
ENOUGH = ((1,), (2,), (1, 1), (1, 2), (2, 2), (1, 1, 1))  # heads of the blocks
NOWHERE = np.zeros((prod(GRID), WIDTH))  # no position is added to a token


def each(function):
    """The function of every entry, as objects."""
    return np.vectorize(function, otypes=[object])


class Numbers(NamedTuple):
    """A kind of numbers: representatives, fractions, inverses, and what a network makes of them.

    `weights` are those of scores, with the derivatives of their logarithms; `root` is √(v + ε);
    `activate` is the MLP's function, with its derivative.
    """

    reduce: Callable[..., Any]
    fraction: Callable[..., Any]
    inverse: Callable[..., Any]
    weights: Callable[..., Any]
    root: Callable[..., Any]
    activate: Callable[..., Any]


def modular_inverse(x):
    """1/x modulo the prime."""
    return np.vectorize(lambda e: pow(int(e), -1, PRIME), otypes=[np.int64])(x)


def polynomial_weights(s):
    """1 + s + s²/2 in place of e^s: any weights will do."""
    w = (1 + s + s * s % PRIME * pow(2, -1, PRIME)) % PRIME
    return w, (1 + s) * modular_inverse(w) % PRIME


def gelu(z):
    """GELU and its derivative, in balls."""
    below = each(lambda e: (1 + (e / arb(2).sqrt()).erf()) / 2)(z)
    density = each(lambda e: (-e * e / 2).exp() / (2 * arb.pi()).sqrt())(z)
    return z * below, below + z * density


MODULAR = Numbers(
    reduce=lambda x: x % PRIME,
    fraction=lambda n, d: n * pow(d, -1, PRIME) % PRIME,
    inverse=modular_inverse,
    weights=polynomial_weights,
    root=np.full_like,  # as if ε made the variance, one for all tokens, this square
    activate=lambda z: ((z * z + z) % PRIME, (2 * z + 1) % PRIME),
)
BALLS = Numbers(
    reduce=lambda x: x,
    fraction=lambda n, d: arb(n) / d,
    inverse=lambda x: 1 / x,
    weights=lambda s: (each(arb.exp)(s), np.full_like(s, arb(1))),
    root=lambda variance, epsilon: each(arb.sqrt)(variance + epsilon),
    activate=gelu,
)


@dataclass
class Dual:
    """Tokens [n, …] and their derivatives [directions, n, …], in numbers of a kind."""

    kind: Numbers
    at: Any
    slope: Any

    def linear(self, weight, bias) -> "Dual":
        """The last axis through a map."""
        at = self.sum("nc,c...->n...", self.at, weight)
        slope = self.sum("mnc,c...->mn...", self.slope, weight)
        return Dual(self.kind, self.kind.reduce(at + bias), slope)

    def sum(self, formula: str, *parts):
        """Sums of products."""
        return self.kind.reduce(np.einsum(formula, *parts))

    def plus(self, other: "Dual") -> "Dual":
        """A residual connection."""
        reduce = self.kind.reduce
        return Dual(self.kind, reduce(self.at + other.at), reduce(self.slope + other.slope))

    def normalised(self, scale, shift, epsilon) -> "Dual":
        """LayerNorm."""
        reduce, share = self.kind.reduce, self.kind.fraction(1, self.at.shape[-1])

        def mean(x):
            return reduce(reduce(x).sum(-1) * share)[..., None]

        y, d = (reduce(part - mean(part)) for part in (self.at, self.slope))
        inverse = self.kind.inverse(self.kind.root(mean(y * y), epsilon))
        y = reduce(y * inverse)
        d = reduce(reduce(d - reduce(y * mean(y * d))) * inverse)
        return Dual(self.kind, reduce(reduce(y * scale) + shift), reduce(d * scale))

    def attended(self, p) -> "Dual":
        """Multi-head attention with relative biases, rotary positions and content."""
        reduce, half = self.kind.reduce, self.kind.fraction(1, 2)  # 1/√4
        (q, k), v = (
            (self.linear(*p[name]).turned(p["rotation"]) for name in "qk"),
            self.linear(*p["v"]),
        )
        scores = reduce(self.sum("qhe,khe->hqk", q.at, k.at) * half + p["bias"])
        moved = self.sum("mqhe,khe->mhqk", q.slope, k.at)
        moved = reduce(moved + self.sum("qhe,mkhe->mhqk", q.at, k.slope))
        weights, slopes = self.kind.weights(scores)
        rows = reduce(weights * self.kind.inverse(reduce(weights.sum(-1)))[..., None])
        moved = reduce(reduce(moved * half) * slopes)
        moved = reduce(moved - self.sum("hqk,mhqk->mhq", rows, moved)[..., None])
        slope = self.sum("mhqk,khe->mqhe", reduce(rows * moved), v.at)
        slope = reduce(slope + self.sum("hqk,mkhe->mqhe", rows, v.slope))
        output, bias = p["o"]
        at = self.sum("qhe,hec->qc", self.sum("hqk,khe->qhe", rows, v.at), output)
        return Dual(self.kind, reduce(at + bias), self.sum("mqhe,hec->mqc", slope, output))

    def turned(self, rotation) -> "Dual":
        """Rotary positions."""
        at = self.sum("nhe,nef->nhf", self.at, rotation)
        return Dual(self.kind, at, self.sum("mnhe,nef->mnhf", self.slope, rotation))

    def activated(self) -> "Dual":
        """The function of the MLP, of each number."""
        at, rate = self.kind.activate(self.at)
        return Dual(self.kind, at, self.kind.reduce(self.slope * rate))


def derivative(kind, network: dict, token, positions, query: int, residual: bool = True):
    """F, with rows (channel in, channel out) and a column for each token, at an image of one token.

    Every token has its own position added to it (zero, if positions are in the scores alone).
    """
    count = len(positions)
    image = np.stack([token] * count)
    directions = np.eye(count * CHANNELS, dtype=int).reshape(-1, count, CHANNELS)
    stream = Dual(kind, image, directions * kind.fraction(1, 1)).linear(*network["embed"])
    stream = Dual(kind, kind.reduce(stream.at + positions), stream.slope)
    for block in network["blocks"]:
        moved = stream.normalised(*block["norm1"]).attended(block)
        stream = stream.plus(moved) if residual else moved
        hidden = stream.normalised(*block["norm2"]).linear(*block["fc1"]).activated()
        stream = stream.plus(hidden.linear(*block["fc2"]))
    slopes = stream.normalised(*network["norm"]).linear(*network["read"]).slope[:, query]
    return slopes.reshape(count, -1).T  # [channel in · channel out, tokens]


def relative(table, grid) -> np.ndarray:
    """Biases [heads, queries, keys] from those by offset, [heads, 2·rows - 1, 2·columns - 1]."""
    positions = np.array([*np.ndindex(*grid)])
    row, column = np.moveaxis(positions[None] - positions[:, None] + np.array(grid) - 1, -1, 0)
    return table[:, row, column]


def turns(angles) -> np.ndarray:
    """Rotations [tokens, 4, 4] of two planes, by row and by column, from (cos, sin)."""
    rotations = np.zeros((len(angles), 4, 4), dtype=np.asarray(angles).dtype) * angles[0][0][0]
    for n, planes in enumerate(angles):
        for plane, (cosine, sine) in enumerate(planes):
            at = slice(2 * plane, 2 * plane + 2)
            rotations[n, at, at] = np.array([[cosine, sine], [-sine, cosine]])
    return rotations


def draw_network(rng: np.random.Generator, heads: Sequence[int], grid: tuple[int, int]) -> dict:
    """All parameters from the numbers modulo the prime; rotations by powers of (3 + 4i)/5."""

    def draw(*shape: int):
        return rng.integers(1, PRIME, shape)

    def affine(*shape: int, bias: int = 1):
        return draw(*shape), draw(*shape[bias:])

    fifth, steps = pow(5, -1, PRIME), [(1, 0)]
    for _ in range(max(grid)):
        a, b = steps[-1]
        steps.append(((3 * a - 4 * b) * fifth % PRIME, (4 * a + 3 * b) * fifth % PRIME))
    rotation = turns([[steps[y], steps[x]] for y, x in np.ndindex(*grid)]) % PRIME
    norm = draw(WIDTH), draw(WIDTH)
    blocks = [
        {
            **{name: affine(WIDTH, n, HEAD) for name in "qkv"},
            "o": affine(n, HEAD, WIDTH, bias=2),
            "bias": relative(draw(n, *(2 * side - 1 for side in grid)), grid),
            "rotation": rotation,
            **{name: (*norm, int(draw(1)[0])) for name in ("norm1", "norm2")},
            "fc1": affine(WIDTH, HIDDEN),
            "fc2": affine(HIDDEN, WIDTH),
        }
        for n in heads
    ]
    ends = {"embed": affine(CHANNELS, WIDTH), "read": affine(WIDTH, CHANNELS)}
    return {"blocks": blocks, "norm": (*norm, 1), **ends}


def modular_rank(matrix: np.ndarray) -> int:
    """Modulo the prime."""
    height, width = matrix.shape
    return int(nmod_mat(height, width, [int(e) for e in matrix.ravel()], PRIME).rank())


def bound(heads: Sequence[int], residual: bool = True) -> int:
    """Π(H_l + 1), or ΠH_l without residual connections."""
    return prod(n + residual for n in heads)


def exact_ranks(run: Run) -> str:
    """Random networks modulo a prime: the rank is the bound, or what the tokens leave of it."""
    summary = []
    grids = (GRID,) if run.quick else (GRID, (1, 7), (2, 2), (1, 1))
    for heads, grid, residual in product(ENOUGH, grids, (True, False)):
        rng, count = run.rng(*heads, *grid), prod(grid)
        network, token = draw_network(rng, heads, grid), rng.integers(1, PRIME, CHANNELS)
        nowhere, query = np.zeros((count, WIDTH), int), int(rng.integers(count))
        rank = modular_rank(derivative(MODULAR, network, token, nowhere, query, residual))
        expected = min(bound(heads, residual), count)
        require(rank == expected, f"{heads} on {grid}, residual {residual}: {rank}")
        if grid == GRID:
            summary.append(f"{heads}: {rank}{'' if residual else ' without'}")
    return "heads of the blocks and rank, with and without residual connections: " + "; ".join(
        summary
    )


def flax_network(rng: np.random.Generator, heads: Sequence[int]):
    """A transformer of Flax modules in float64, of tokens and positions, and its parameters."""
    from flax import nnx

    def normal(key, shape, dtype):
        return jnp.asarray(rng.normal(scale=0.5, size=shape), dtype)

    options = {"rngs": nnx.Rngs(0), "param_dtype": jnp.float64, "bias_init": normal}
    linear = partial(nnx.Linear, kernel_init=normal, **options)
    norm = partial(nnx.LayerNorm, WIDTH, epsilon=1e-5, scale_init=normal, **options)
    angle = rng.normal(size=2) * np.array([*np.ndindex(*GRID)])
    rotation = turns(np.stack([np.cos(angle), np.sin(angle)], axis=-1))
    biases = [relative(rng.normal(size=(n, 5, 7)), GRID) for n in heads]

    def attend(bias, query, key, value, **others):
        """As Flax does, which would take the softmax in float32."""
        query, key = (jnp.einsum("nhe,nef->nhf", x, rotation) for x in (query, key))
        rows = jax.nn.softmax(jnp.einsum("qhe,khe->hqk", query, key) / 2 + bias)
        return jnp.einsum("hqk,khe->qhe", rows, value)

    blocks = [
        {
            "attention": nnx.MultiHeadAttention(
                n,
                WIDTH,
                n * HEAD,
                kernel_init=normal,
                attention_fn=partial(attend, bias),
                decode=False,
                **options,
            ),
            "norm1": norm(),
            "norm2": norm(),
            "fc1": linear(WIDTH, HIDDEN),
            "fc2": linear(HIDDEN, WIDTH),
        }
        for n, bias in zip(heads, biases, strict=True)
    ]
    embed, last, read = linear(CHANNELS, WIDTH), norm(), linear(WIDTH, CHANNELS)

    def apply(image, positions):
        stream = embed(image) + positions
        for block in blocks:
            stream = stream + block["attention"](block["norm1"](stream))
            hidden = block["fc1"](block["norm2"](stream))
            stream = stream + block["fc2"](nnx.gelu(hidden, approximate=False))
        return read(last(stream))

    def balls(*arrays) -> tuple:
        return tuple(exactly(np.asarray(array[...])) for array in arrays)

    def normed(module) -> tuple:
        return (*balls(module.scale, module.bias), arb(1e-5))

    stored = []
    for block, bias in zip(blocks, biases, strict=True):
        every = block["attention"]
        maps = {"q": every.query, "k": every.key, "v": every.value, "o": every.out}
        maps |= {"fc1": block["fc1"], "fc2": block["fc2"]}
        parameters = {name: balls(module.kernel, module.bias) for name, module in maps.items()}
        parameters |= {name: normed(block[name]) for name in ("norm1", "norm2")}
        stored.append(parameters | {"bias": exactly(bias), "rotation": exactly(rotation)})
    ends = {"embed": balls(embed.kernel, embed.bias), "read": balls(read.kernel, read.bias)}
    return apply, {"blocks": stored, "norm": normed(last), **ends}


def exactly(x: np.ndarray) -> np.ndarray:
    """Floating-point numbers as balls without a radius."""
    return each(lambda e: arb(float(e)))(x)


def singular_values(run: Run, heads: Sequence[int], positions: Sequence[np.ndarray]):
    """Of Jacobians in float64, and how far they are at most from those of the true derivatives.

    By Weyl's inequality that is the Frobenius norm of the difference, which balls enclose, and the
    error of the SVD, a small multiple of u times the norm of the matrix.
    """
    with jax.enable_x64(True), ctx.workprec(128):
        rng, query = run.rng(*heads), 5
        apply, network = flax_network(rng, heads)
        token = rng.normal(size=CHANNELS)
        image = jnp.asarray(np.stack([token] * prod(GRID)))
        jacobian = jax.jit(jax.jacfwd(lambda *args: apply(*args)[query]))
        jacobian = jacobian.lower(image, jnp.asarray(positions[0])).compile(FAST_COMPILE)
        for position in positions:
            slopes = np.asarray(jacobian(image, jnp.asarray(position)), np.float64)
            slopes = slopes.transpose(2, 0, 1).reshape(CHANNELS**2, -1)
            true = derivative(BALLS, network, exactly(token), exactly(position), query)
            distance = upper(arb(((exactly(slopes) - true) ** 2).sum()).sqrt())
            values = np.linalg.svd(slopes, compute_uv=False)
            yield values, distance + 100 * 2.0**-52 * float(values[0])


def flax_ranks(run: Run) -> str:
    """Flax transformers: the singular values beyond the bound vanish up to the derived error."""
    summary = []
    for heads in ENOUGH[:1] if run.quick else ENOUGH:
        ((values, error),) = singular_values(run, heads, [NOWHERE])
        most, beyond = bound(heads), float(values[bound(heads)])
        require(error <= 2.0**-26 * values[0], f"{heads}: half of the digits differ, by {error}")
        require(beyond <= error, f"{heads}: singular value {most + 1} is {beyond}, over {error}")
        require(values[most - 1] > error, f"{heads}: the rank is not shown to be {most}")
        summary.append(
            f"{heads}: {most}, least {values[most - 1]:.0e}, next {beyond:.0e} ≤ {error:.0e}"
        )
    return "heads of the blocks and rank; " + "; ".join(summary)


def positions_in_tokens(run: Run) -> str:
    """With a position added to each token, or to one alone, the bound is exceeded."""
    summary = []
    drawn = run.rng("positions").normal(size=NOWHERE.shape)
    class_token = np.where(np.arange(prod(GRID))[:, None] == prod(GRID) - 1, drawn, 0)
    for heads in ENOUGH[:1] if run.quick else ENOUGH[1:3]:
        spectra = singular_values(run, heads, [drawn, class_token])
        for name, (values, error) in zip(("positions", "a class token"), spectra, strict=True):
            rank, most = int((values > error).sum()), bound(heads)
            rank -= name != "positions"  # the class token's own column belongs to no offset
            require(rank > most, f"{name}, {heads}: rank {rank}, no more than {most}")
            summary.append(f"{name}, {heads}: rank {rank} > {most}")
    return "; ".join(summary)


def least_blocks(run: Run) -> str:
    """The counts of the library against kernels drawn modulo a prime; 729 offsets take three."""
    for size, channels, heads in product((1, 3, 5), (1, 2, 5), (1, 2, 3, 8)):
        kernel = run.rng(size, channels).integers(0, PRIME, (size**2, channels**2))
        rank = modular_rank(kernel)
        blocks = count_blocks(size, heads, in_channels=channels, out_channels=channels)
        enough = bound((heads,) * blocks) >= rank and (blocks > 0 or size == 1)
        fewer = blocks and bound((heads,) * (blocks - 1)) >= rank
        require(enough and (not fewer or blocks == 1), f"K = {size}, {channels}, {heads}: {blocks}")
    vit = count_blocks(27, 12, in_channels=768, out_channels=768)
    require(vit == 3 and vit.claim == "S.blocks", f"27 × 27 with 12 heads: {vit}")
    windows = [relative(np.arange(729).reshape(1, 27, 27), (14, 14))[0] == n for n in range(729)]
    sums = np.stack(windows, axis=-1).any(axis=1).astype(int)  # [queries, offsets]
    free = 729 - modular_rank((sums[1:] - sums[:1]) % PRIME)
    require(free == 534 > 13**2, f"equal window sums leave a rank of {free}")
    return "36 sizes; 27 × 27 with 12 heads: 3 blocks; with equal window sums rank 534 at most"


CLAIM = Claim(
    id="S.blocks",
    source="this project, beside S.depth and S.content",
    verdict=Verdict.HOLDS,
    kinds=(Kind.LOWER_BOUND,),
    evidence=(
        proved(
            "sharpened/blocks.v",
            covers="(1), (2) for blocks of one width and maps of one token with Jacobians, in (2) "
            "where all weights are positive at the image; not: that LayerNorm and MLPs have them, "
            "limits, (3)",
        ),
        certified(
            "S.depth",
            "K*-in*",
            name="kernels of rank ρ, as for S.depth",
            covers="ρ heads of a layer without content, which the derivative is",
        ),
        Evidence("exact ranks", Level.TESTED, exact_ranks),
        Evidence("least numbers of blocks", Level.TESTED, least_blocks),
        Evidence("Flax transformers", Level.BOUNDED, flax_ranks, assumes=ASSUMES, quick=False),
        Evidence(
            "positions in the tokens",
            Level.BOUNDED,
            positions_in_tokens,
            assumes=ASSUMES,
            quick=False,
        ),
    ),
)
