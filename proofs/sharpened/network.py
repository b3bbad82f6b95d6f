"""S.network: a whole residual network is a network of attention layers.

Claimed. Every residual network of convolutions equals a network in which each convolution is an
attention layer of K² + 1 heads at finite parameters.
True. It does at every image size, for odd kernels on pixels with zero tokens around them and batch
norm by running statistics; ReLU, sums and the classifier remain, and in float32 the error is
bounded.

Printed. Not from a paper: our own result. Every residual network of convolutions with batch
normalisation (by its running statistics), ReLU, residual sums, the mean of all pixels and a linear
classifier equals a network in which every convolution is an attention layer of K² + 1 heads at
finite parameters; one set of weights serves every image size.

Verified. The same, with odd kernels on pixels, the ring of S.finite and any leak ε in (0, 1): ten
heads for 3 × 3, two for 1 × 1; a stride is the layer at every pixel, of which every stride-th is
kept. The value maps are one set; the biases depend on the number of pixels (S.finite). Beside
attention there remain ReLU, the sums, and the classifier, which act on single pixels; the mean of
all pixels is itself one uniform head, on the bare grid. In float32 the logits of a trained network
and of its attention network differ by no more than a bound that follows from both runs.

Nothing to repair.

Proof. Batch normalisation by fixed statistics is affine in each channel, so (W * x - m)s + β =
(Ws) * x + (β - ms). The rest is induction over the steps: with equal inputs a convolution and its
attention layer have equal outputs by S.finite, at every query since all offsets are keys in the
ring, and every other step is one and the same function. ∎

*The bound in floating point:* let d be the difference of the two runs' activations. Convolutions
and sums pass it on linearly, ReLU by the secant slope of its two arguments, in [0, 1] and known
once both runs are done. So the difference of a logit is exactly Σ gᵀ(r - r') over the local
rounding errors, g the transposed network's cotangents, and each |r| has the bound of its own layer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from jaxtyping import Int, Shaped

from convattn.operators.roundoff import ASSUMPTION
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict
from convattn_ledger.evidence import certified
from convattn_ledger.evidence.exact_attention import exact_softmax

LEAKS = (Fraction(1, 2), Fraction(1, 10))


@dataclass(frozen=True)
class Normalized:
    """A convolution and its batch normalisation.

    Attributes:
        `kernel` HWIO of integers; `mean`, `deviation` (the root of variance + ε), `scale` and
        `shift`, `[out]`, fractions; `stride`.
    """

    kernel: Int[np.ndarray, "rows columns in_channels out_channels"]
    mean: Shaped[np.ndarray, " out_channels"]
    deviation: Shaped[np.ndarray, " out_channels"]
    scale: Shaped[np.ndarray, " out_channels"]
    shift: Shaped[np.ndarray, " out_channels"]
    stride: int


Layer = Callable[[Normalized, np.ndarray], np.ndarray]


def draw_normalized(
    rng: np.random.Generator, size: int, inputs: int, outputs: int, stride: int
) -> Normalized:
    """Small integers, and statistics that are fractions."""

    def fractions(low: int, high: int) -> np.ndarray:
        parts = [
            Fraction(int(n), int(rng.integers(1, 7))) for n in rng.integers(low, high, outputs)
        ]
        return np.array(parts, object)

    kernel = rng.integers(-3, 4, (size, size, inputs, outputs))
    return Normalized(
        kernel, fractions(-5, 6), fractions(1, 6), fractions(1, 4), fractions(-4, 5), stride
    )


def normalized(layer: Normalized, image: np.ndarray) -> np.ndarray:
    """(W * x - m)·γ/√(v + ε) + β at every stride-th pixel of one image."""
    pixels = _padded_sum(layer.kernel.astype(object), image)
    pixels = (pixels - layer.mean) * (layer.scale / layer.deviation) + layer.shift
    return pixels[:: layer.stride, :: layer.stride]


def attended(uniform_weight: Fraction) -> Layer:
    """The same layer as K² + 1 heads that leak so much: S.finite on the folded kernel.

    Head δ has the score M at q + δ and 0 at every other key, ring included, and the map
    W_δ/(1 - ε); the last head has no score, and the map -ε/(1 - ε)·Σ_δ W_δ.
    """

    def apply(layer: Normalized, image: np.ndarray) -> np.ndarray:
        factor = layer.scale / layer.deviation
        kernel = layer.kernel.astype(object) * factor
        reach = kernel.shape[0] // 2
        ringed = np.pad(image, [(reach, reach), (reach, reach), (0, 0)])
        rows, columns = image.shape[:2]
        tokens = ringed.reshape(-1, image.shape[2])
        keys = np.arange(len(tokens)).reshape(ringed.shape[:2])
        base = 1 + len(tokens) * (1 / uniform_weight - 1)
        total = np.zeros((rows * columns, kernel.shape[3]), object)
        for row, column in product(range(kernel.shape[0]), range(kernel.shape[1])):
            target = keys[row : row + rows, column : column + columns].reshape(-1)
            scores = (np.arange(len(tokens)) == target[:, None]).astype(int)
            weights = exact_softmax(scores, base)
            total = total + weights @ (tokens @ (kernel[row, column] / (1 - uniform_weight)))
        uniform = exact_softmax(np.zeros((1, len(tokens)), int), base)
        taken = kernel.sum(axis=(0, 1)) * (-uniform_weight / (1 - uniform_weight))
        total = total + uniform @ (tokens @ taken)
        bias = layer.shift - layer.mean * factor
        output = (total + bias).reshape(rows, columns, -1)
        return output[:: layer.stride, :: layer.stride]

    return apply


def _padded_sum(kernel: np.ndarray, image: np.ndarray) -> np.ndarray:
    """Σ_δ x_(q+δ) W_δ with zeros outside."""
    reach = kernel.shape[0] // 2
    ringed = np.pad(image, [(reach, reach), (reach, reach), (0, 0)])
    rows, columns = image.shape[:2]
    total = np.zeros((rows, columns, kernel.shape[3]), object)
    for row, column in product(range(kernel.shape[0]), range(kernel.shape[1])):
        total = total + ringed[row : row + rows, column : column + columns] @ kernel[row, column]
    return total


def exact_logits(
    layers: dict[str, Normalized],
    classifier: Int[np.ndarray, "features classes"],
    image: Int[np.ndarray, "height width channels"],
    layer: Layer,
) -> Shaped[np.ndarray, " classes"]:
    """A stem, a residual block with a shortcut of its own, the mean, a classifier, in fractions.

    Args:
        layers: `stem`, `first`, `second`, `shortcut`.
        layer: How a layer is computed, `normalized` or `attended(leak)`.
    """
    activations = np.maximum(layer(layers["stem"], image.astype(object)), 0)
    branch = layer(layers["second"], np.maximum(layer(layers["first"], activations), 0))
    activations = np.maximum(branch + layer(layers["shortcut"], activations), 0)
    pixels = activations.reshape(-1, activations.shape[2])
    return (pixels.sum(axis=0) * Fraction(1, len(pixels))) @ classifier.astype(object)


def fractions(run: Run) -> str:
    """Logits as trained and as attention, equal as fractions, on images of even and odd sides."""
    rng = run.rng("layers")
    sizes = {"stem": (3, 2, 3, 1), "first": (3, 3, 2, 2), "second": (3, 2, 2, 1)}
    sizes["shortcut"] = (1, 3, 2, 2)
    layers = {name: draw_normalized(rng, *size) for name, size in sizes.items()}
    classifier = rng.integers(-5, 6, (2, 3))
    summary = []
    for side, uniform_weight in zip(((4, 4), (3, 5)), LEAKS, strict=True):
        image = rng.integers(-4, 5, (*side, 2))
        expected = exact_logits(layers, classifier, image, normalized)
        logits = exact_logits(layers, classifier, image, attended(uniform_weight))
        if logits.tolist() != expected.tolist():
            raise EvidenceFailed(
                f"ε = {uniform_weight}: logits {logits}, but as trained {expected}"
            )
        if len(set(expected.tolist())) == 1:
            raise EvidenceFailed(f"all logits are {expected[0]}, which compares nothing")
        summary.append(
            f"{side[0]} × {side[1]} pixels, ε = {uniform_weight}: ({', '.join(map(str, logits))})"
        )
    return "logits equal as fractions: " + "; ".join(summary)


def float32_logits(run: Run) -> str:
    """A trained network's own layers against attention layers, both in float32."""
    from convattn.networks.transformation.attention_of import attention_of
    from convattn_lab.models.resnet_function import image_function, random_resnet
    from convattn_lab.models.settings import ResNetSettings

    settings = ResNetSettings(channels=(3, 4), blocks=(1, 1))
    model = random_resnet(run.rng("parameters"), settings, 3)
    channels = np.full(3, 0.5)
    images = run.rng("images").integers(0, 256, (2, 8, 8, 3)).astype(np.uint8)
    function = image_function(model, channels, channels / 2)
    report = attention_of(function, images, uniform_weight=0.25).report
    shares = {layer.path: (layer.difference or 0) / (layer.bound or 0.0) for layer in report.layers}
    worst = max(shares, key=shares.__getitem__)
    if not report.passed or report.bound is None:
        raise EvidenceFailed(
            f"logits differ by {report.difference:.3g}, the bound is {report.bound}; {worst} is at "
            f"{shares[worst]:.3g} of its own"
        )
    spread = float(np.ptp(np.asarray(function(images)), axis=1).min())
    if not report.bound < spread / 8:
        raise EvidenceFailed(
            f"the bound {report.bound:.3g} says little of logits {spread:.3g} apart"
        )
    return (
        f"{len(report.layers)} layers, logits {spread:.2g} apart differ by at most "
        f"{report.difference:.2g}, {len(report.entries)} of them bounded by {report.bound:.2g}; "
        f"{worst} reaches {shares[worst]:.2g} of its own"
    )


CLAIM = Claim(
    id="S.network",
    source="this project, S.finite layer by layer",
    verdict=Verdict.HOLDS,
    kinds=(Kind.LAYER_EQUALITY,),
    evidence=(
        certified("S.network", covers="ε = 1/2"),
        Evidence("fractions", Level.TESTED, fractions, assumes="Python's fractions"),
        Evidence("float32 logits", Level.BOUNDED, float32_logits, assumes=ASSUMPTION, quick=False),
    ),
)
