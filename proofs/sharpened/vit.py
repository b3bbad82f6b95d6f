"""S.vit: a convolutional network is an unmodified vision transformer, as nearly as one likes.

Claimed. A vision transformer without any change comes as near to a convolutional network as one
likes on bounded images, by explicit parameters, and is never exactly one, unless it is constant.
True. It does, within a derived bound that real images keep in float64 and float32; never exactly,
as its logits are bounded and analytic, unless the network's logits are constant.

Printed. Not from a paper: our own result. For every network of K × K convolutions (at stride 1, or
strided and read à trous), folded batch norms, biases, ReLU, residual sums, average pooling and a
linear classifier, on n × n images, there are explicit parameters of a stock vision transformer
(LayerNorm with its own ε, softmax attention, GELU, a class token, learned positions, K² heads, a
block or more a convolution) whose logits differ from the network's, on bounded images, by at most a
bound that is derived, and that tends to 0 as three numbers grow: Λ, s and S. No stock vision
transformer with ε > 0 is exactly such a network on all images, nor on an open set of them, unless
the network's logits are constant there.

Verified. The same. The limit is Coq's for stride 1, with one head more than offsets and a bound of
its own; for K² heads and for strides it is proved on paper alone, below under Composition. The
library's bound is another, derived for the images that are run and with rounding, which does not
tend to 0; on real images in float64 and float32 every logit lies within it. Exactly never:
LayerNorm's output has the norm √D at most, so logits are at most ‖w‖(‖γ‖√D + ‖β‖) + |b|, whatever
the blocks are; no network of unbounded logits is such a transformer. That bounded ones are none,
and none on an open set, takes that a transformer's logits are analytic, which is proved on paper
alone. Without the last LayerNorm that would be false: no blocks, a linear patch embedding and a
linear classifier are a linear convolution.

Nothing to repair.

Proof. *The idea:* large constants keep LayerNorm's scale nearly constant, sharp scores make one-hot
heads, and GELU of a large argument is nearly ReLU.

*Pairs*: the stream holds (f, -f), so LayerNorm's mean is 0; one pair ±λ of each token makes the
square sum of its constants, each pair counted once, Λ². With γ = √(2/D)√(Λ² + εD/2), LN(x) = xρ
with ρ = (1 + |f|²/(Λ² + εD/2))^(-1/2), 1 - |f|²/2Λ² ≤ ρ ≤ 1.

*Heads*: tokens have corners of a polygon as codes on each axis; queries are turned by the offset,
so that the target's score exceeds the others' by 2S at least; the class token, whose values are
zero, scores in the middle: it is read where the target does not exist. As ρ differs from token to
token, by η = |f|²/2Λ² at most, every other weight is at most e^(-S'), S' ≥ (1 - cη)S; tokens whose
mean is read have the score 0.

*MLP*: with GELU(z) = zΦ(z), GELU(z) - GELU(-z) = z as Φ(z) + Φ(-z) = 1, and 0 ≤ ReLU(z) -
GELU(sz)/s ≤ m/s, m = max zΦ(-z).

*Composition*: a block passes on a difference by its Lipschitz constant, so what arises in block l
is multiplied by those of the later ones; the sum tends to 0 as what arises does.

*Converse*: on an open set on which the network is affine and not constant, a vision transformer
with ε > 0, which is analytic, would be the same affine function on all images, but it is bounded. ∎
"""

from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flint import arb, ctx

from convattn.compile import to_vision_transformer
from convattn.compile.parameters import Builder, Constants
from convattn.compile.plan import Plan, Reading
from convattn.compile.scalar import GELU_DEVIATION, GELU_SLOPE
from convattn.compile.transformer import CompiledTransformer
from convattn.operators.roundoff import ASSUMPTION
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.bounds.saturation import PRECISION
from convattn_ledger.evidence import proved
from convattn_ledger.evidence.enclosures import ASSUMES as BALLS
from convattn_ledger.evidence.real_images import whole_images

LARGE = Constants(2.0**34, 2.0**50, 1024.0, 1e-6)
ALONE = {  # one number small at a time, so that its error is seen above rounding
    "Λ": Constants(1000.0, 2.0**50, 1024.0, 1e-6),
    "ε": Constants(1000.0, 2.0**50, 1024.0, 1.0),
    "s": Constants(2.0**34, 2.0**8, 1024.0, 1e-6),
    "S": Constants(2.0**34, 2.0**50, 24.0, 1e-6),
}
SLACK = 1e5  # how far above a difference its bound may be and say something


def network(rng: np.random.Generator, stride: int = 1) -> Any:
    """A convolution, a residual block with its own shortcut, the mean of all pixels, 3 classes."""
    sizes = {"stem": (3, 3, 3, 3), "first": (3, 3, 3, 4), "second": (3, 3, 4, 4)}
    sizes["shortcut"] = (1, 1, 3, 4)
    kernels = {
        name: rng.normal(size=size) * np.sqrt(2 / np.prod(size[:-1]))
        for name, size in sizes.items()
    }
    biases = {name: rng.normal(size=size[-1]) / 10 for name, size in sizes.items()}
    classifier = rng.normal(size=(4, 3))

    def convolved(name: str, x: Any, stride: int = 1) -> Any:
        result = jax.lax.conv_general_dilated(
            x,
            jnp.asarray(kernels[name], x.dtype),
            (stride, stride),
            "SAME" if stride == 1 else "VALID" if name == "shortcut" else ((1, 1), (1, 1)),
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            precision=jax.lax.Precision.HIGHEST,
        )
        return result + jnp.asarray(biases[name], x.dtype)

    def logits(x: Any) -> Any:
        x = jax.nn.relu(convolved("stem", x))
        branch = convolved("second", jax.nn.relu(convolved("first", x, stride)))
        x = jax.nn.relu(branch + convolved("shortcut", x, stride))
        return x.mean((1, 2)) @ jnp.asarray(classifier, x.dtype)

    return logits


def compiled(function: Any, images: np.ndarray, **options: Any) -> CompiledTransformer:
    """The vision transformer; the evidence fails unless each logit is within its bound."""
    model = to_vision_transformer(function, images, dtype=images.dtype.name, **options)
    report = model.report
    assert report is not None
    if not report.within:
        raise EvidenceFailed(
            f"{images.dtype}, {model.constants}: logits differ by {report.difference:.3g}, the "
            f"largest bound is {report.bound.total.max():.3g}"
        )
    return model


def whole_runs(run: Run) -> str:
    """Strides 1 and 2, patches of 8 and 4 pixels, in both dtypes, on whole images."""
    images = whole_images(run, 4 if run.quick else None) / 255
    summary = []
    for (stride, patch), dtype in product(((1, 8), (2, 4)), ("float64", "float32")):
        function = network(run.rng("network"), stride)
        report = compiled(function, images.astype(dtype), patch_size=patch).report
        assert report is not None
        limit = {"float64": 1e-12, "float32": 5e-6}[dtype] * report.largest
        if not (report.difference <= limit and report.same_class == report.images):
            raise EvidenceFailed(
                f"stride {stride}, patches of {patch}, {dtype}: logits differ by "
                f"{report.difference:.3g} of {report.largest:.3g}, {report.same_class} classes of "
                f"{report.images} are the same"
            )
        summary.append(f"{report.difference / report.largest:.2g}")
    return f"{len(images)} images, relative to the largest logit: " + ", ".join(summary)


def each_error_alone(run: Run) -> str:
    """One of Λ, ε, s and S moderate, the others large: its error is seen, and within its bound."""
    images, function = run.rng("images").random((2, 6, 6, 3)), network(run.rng("network"))
    summary, all_large = [], compiled(function, images, constants=LARGE).report
    assert all_large is not None
    rounded = float(all_large.bound.total.max())
    for name, constants in ALONE.items():
        report = compiled(function, images, constants=constants).report
        assert report is not None
        if not (report.difference > 8 * rounded and report.ratio < SLACK):
            raise EvidenceFailed(
                f"{name}: logits differ by {report.difference:.3g}, but expected more than the "
                f"rounding of {rounded:.3g}, and less than {SLACK:g} times below the bound "
                f"({report.ratio:.3g})"
            )
        summary.append(f"{name} {report.difference:.2g} (bound {report.ratio:.2g} times that)")
    return "; ".join(summary)


def never_exact(run: Run) -> str:
    """Images that grow: the vision transformer's logits stay below ‖w‖‖γ‖√D + |b|."""
    small, function = run.rng("images").random((2, 4, 4, 3)), network(run.rng("network"))
    model = compiled(function, small, constants=Constants(64.0, 64.0, 16.0, 1e-6))
    arrays, width = model.timm, model.plan.width
    largest = np.abs(arrays["norm.weight"]).max() * np.sqrt(width)
    limits = np.linalg.norm(arrays["head.weight"], axis=1) * largest + np.abs(arrays["head.bias"])
    exceeded = 0.0
    for power in range(0, 41, 8):
        scaled = small * 2.0**power
        logits, expected = np.abs(model(scaled)), np.abs(function(scaled))
        if not (logits <= limits * (1 + 1e-9)).all():
            raise EvidenceFailed(f"images times 2^{power}: logits {logits}, above {limits}")
        exceeded = float((expected / limits).max())
    if not exceeded > 1:
        raise EvidenceFailed(f"the network's logits reach {exceeded:.3g} of the limits alone")
    return f"up to 2^40 times the images; the network's logits reach {exceeded:.2g} times the limit"


def gelu(run: Run) -> str:
    """max zΦ(-z), at its only critical point on z ≥ 0, and the largest slope of GELU, at √2."""
    with ctx.workprec(PRECISION):
        place, step = arb("0.7517915246935645"), arb("1e-12")
        one = arb(1)

        def upper_tail(z: arb) -> arb:
            return (z / arb(2).sqrt()).erfc() / 2

        def density(z: arb) -> arb:
            return (-z * z / 2).exp() / (2 * arb.pi()).sqrt()

        def slope(z: arb) -> arb:
            return upper_tail(z) - z * density(z)

        require(slope(place - step) > 0 and slope(place + step) < 0, "no maximum where it is said")
        root = arb(2).sqrt()
        # zΦ(-z) is concave on [0, √2]; from there on its slope is negative, and rises to 0
        require(slope(root) < 0, f"the slope at √2 is {slope(root)}")
        most = (place + arb(0, step)) * upper_tail(place - step)
        stated = arb(GELU_DEVIATION)
        close = most < stated * (one + arb("1e-9")) and most > stated * (one - arb("1e-9"))
        require(close, f"max zΦ(-z) is {most}, stated {GELU_DEVIATION}")
        steepest = one - upper_tail(root) + root * density(root)
        require(steepest < arb(GELU_SLOPE), f"GELU's slope is {steepest} at √2")
        require(steepest > arb(GELU_SLOPE) - arb("0.01"), f"{GELU_SLOPE} says little")
        return f"max zΦ(-z) = {most.str(10)}, largest slope of GELU {steepest.str(8)}"


def addressing(run: Run) -> str:
    """Scores in balls: S above all others at the target; the class token where there is none."""
    function = network(run.rng("network"))
    images = run.rng("images").random((1, 5, 7, 3))
    model = compiled(function, images, constants=LARGE)
    plan, builder = model.plan, Builder(model.plan, LARGE)
    heads = {h.reading for block in plan.blocks for h in block.heads if h.reading.kind == "offset"}
    positions, checked = builder.positions(), 0
    for reading in sorted(heads, key=lambda each: each.where):
        query, key = builder.scores(reading)
        scores = (positions @ query.T) @ (key @ positions.T)
        with ctx.workprec(PRECISION):
            checked += _require_addressed(plan, reading, scores)
    require(checked > 0, "no heads to look at")
    return (
        f"{len(heads)} offsets, {checked} queries on 5 × 7 tokens: a gap of S = {LARGE.sharpness}"
    )


def _require_addressed(plan: Plan, reading: Reading, scores: np.ndarray) -> int:
    """The scores of each query, as the angles give them in balls, and as the library has them."""
    counts, steps = reading.code.tokens.count, plan.steps(reading.code)
    tokens = list(product(*map(range, counts)))
    turns = [arb(2) / round(2 * np.pi / step) for step in steps]  # in units of π
    gap = min((1 - turn.cos_pi() for turn in turns), key=float)
    kappa = 2 * arb(LARGE.sharpness) / gap
    for number, query in enumerate(tokens):
        target = tuple(q + d for q, d in zip(query, reading.where, strict=True))
        row = [kappa * (2 - gap / 2)]
        for token in tokens:
            angles = (turn * (t - k) for turn, t, k in zip(turns, target, token, strict=True))
            row.append(kappa * sum((angle.cos_pi() for angle in angles), arb()))
        index = 1 + tokens.index(target) if target in tokens else 0
        sharp = arb(LARGE.sharpness) * (1 - arb("1e-30"))
        others = [score for token, score in enumerate(row) if token != index]
        require(all(row[index] - score > sharp for score in others), f"{reading}, query {query}")
        for token, (score, own) in enumerate(zip(row, scores[number + 1].tolist(), strict=True)):
            near = abs(score - arb(own)) < arb("1e-12") * kappa
            require(near, f"{reading}, query {query}, token {token}: {own}, but expected {score}")
    return len(tokens)


CLAIM = Claim(
    id="S.vit",
    source="this project, S.padding, S.polygon and GELU's symmetry, block by block",
    verdict=Verdict.HOLDS,
    kinds=(Kind.LIMIT,),
    evidence=(
        proved(
            "sharpened/vit_parts.v",
            covers="pairs, and the bounds of ρ for every ε ≥ 0, GELU's symmetry where Φ(z) + Φ(-z) "
            "= 1, |ReLU(z) - GELU(sz)/s| ≤ m/s for an m with which it holds at s = 1, the leak of "
            "a head given the ratio of its weights; not: m for the Gaussian, the sign of that "
            "difference, S'",
        ),
        proved(
            "sharpened/vit_bound.v",
            covers="the composition, as a bound in numbers of its own, in sums of absolute "
            "entries, for networks on tokens as in vit and Λ large enough; not: the library's "
            "bound, cleared channels, rounding, GELU as GELU",
        ),
        proved(
            "sharpened/vit.v",
            covers="the limit, uniform on bounded images, for networks on tokens whose targets "
            "have the greatest score under the codes, by one at least, and the score 0 where there "
            "are several, and every Φ with zΦ(z) within some c of ReLU(z); not: rounding, GELU as "
            "GELU",
        ),
        proved(
            "sharpened/vit_convolution.v",
            covers="the same limit for convolutions at stride 1 with biases, ReLU on any channels, "
            "so residual sums, the mean, by codes of integers and a head more than offsets; not: "
            "K² heads, strides, pooling in between, polygons as codes, rounding, GELU as GELU",
        ),
        proved(
            "sharpened/vit_reals.v",
            covers="the limit of those, with the real exponential and root, for every Φ with zΦ(z) "
            "within some c of ReLU(z), as the logistic function has; not: that the "
            "Gaussian's is such a Φ, the features and heads in numbers",
        ),
        proved(
            "sharpened/vit_never.v",
            covers="never exact where the network's logits are unbounded; under the identity "
            "property along a line of images, a logit that is affine on an interval is constant "
            "there; not: that logits are analytic, and so have it, that a network is affine on an "
            "open set",
        ),
        Evidence("GELU", Level.ENCLOSED, gelu, assumes=BALLS),
        Evidence("addressing", Level.ENCLOSED, addressing, assumes=BALLS),
        Evidence("whole runs", Level.BOUNDED, whole_runs, assumes=ASSUMPTION, quick=False),
        Evidence("each error alone", Level.BOUNDED, each_error_alone, assumes=ASSUMPTION),
        Evidence("never exact", Level.BOUNDED, never_exact, assumes=ASSUMPTION),
    ),
)
