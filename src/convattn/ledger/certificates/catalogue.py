"""Every committed certificate, by file name."""

from collections.abc import Iterator
from typing import Any

from convattn.ledger.certificates.commutant import commutant_certificate
from convattn.ledger.certificates.counterexample import (
    border_certificate,
    no_shared_map_certificate,
    rank_certificate,
    saturation_certificate,
)
from convattn.ledger.certificates.equality import equality_certificate
from convattn.ledger.certificates.given_kernel_catalogue import given_kernel_certificates
from convattn.ledger.certificates.head_dimension import head_dimension_certificate
from convattn.ledger.certificates.identity import identity_certificates
from convattn.ledger.certificates.lower_bound import (
    box_bound_certificate,
    generic_bound_certificate,
    pixel_bound_certificate,
)
from convattn.ledger.certificates.narrow_heads import narrow_heads_certificate
from convattn.ledger.certificates.total_variation import (
    bias_variation_certificate,
    quadratic_variation_certificate,
)
from convattn.ledger.certificates.two_layers import (
    exponentials_certificate,
    two_layers_certificate,
)

SIZES = ((3, 1), (5, 1), (11, 1), (3, 2), (3, 16), (5, 16), (11, 4))
THEOREMS = (
    ("C20.theorem1", "quadratic", "In the limit alpha -> infinity the quadratic heads compute"),
    ("L21.theorem1", "bias", "In the limit M -> infinity the one-hot biases compute"),
    ("S.finite", "leaky", "At finite parameters, with one uniform head more, the biases compute"),
    ("S.dp1", "scalar", "At finite parameters a single positional feature computes"),
)
# Claim, construction, kernel size, patch size, stride, dilation.
VARIATIONS: tuple[tuple[str, str, tuple[int, ...], int, int, int], ...] = (
    ("C20.lemma1", "given", (3, 3), 1, 1, 1),
    ("C20.padding", "quadratic", (3, 3), 1, 1, 1),
    ("C20.padding", "quadratic", (5, 5), 1, 1, 1),
    ("C20.stride", "quadratic", (3, 3), 1, 2, 1),
    ("C20.stride", "quadratic", (5, 5), 1, 3, 1),
    ("C20.dilation", "quadratic", (3, 3), 1, 1, 2),
    ("C20.dilation", "quadratic", (5, 5), 1, 1, 3),
    ("C20.sequence", "quadratic", (3,), 1, 1, 1),
    ("C20.sequence", "quadratic", (7,), 1, 1, 1),
    ("L21.wo", "bias", (3, 3), 4, 1, 1),
    ("L21.wo", "bias", (5, 5), 16, 1, 1),
    ("L21.cor3", "bias", (3, 3), 1, 1, 1),
    ("L21.cor3", "bias", (5, 5), 1, 1, 1),
    ("L21.cor4", "bias", (3, 3), 2, 1, 1),
    ("L21.cor4", "bias", (5, 5), 2, 1, 1),
    ("L21.cor4", "bias", (9, 9), 4, 1, 1),
    ("L21.cor4", "bias", (3, 3), 16, 1, 1),
    ("L21.variants", "bias", (5, 5), 4, 2, 1),
    ("L21.variants", "bias", (3, 3), 2, 3, 1),
    ("L21.variants", "bias", (3, 3), 4, 1, 2),
    ("L21.variants", "bias", (5, 5), 4, 2, 3),
    ("L21.absolute", "absolute", (3, 3), 1, 1, 1),
    ("L21.absolute", "absolute", (3, 3), 4, 1, 1),
    ("L21.theorem6", "bias", (1, 1), 2, 1, 1),
    ("S.dp2", "enumerated", (3, 3), 1, 1, 1),
    ("S.dp2", "enumerated", (5, 5), 4, 1, 1),
    ("S.polygon", "polygon", (3, 3), 1, 1, 1),
    ("S.polygon", "polygon", (5, 5), 1, 1, 1),
    ("S.polygon", "polygon", (5, 5), 4, 1, 1),
    ("S.network", "leaky", (3, 3), 1, 1, 1),
    ("S.network", "leaky", (3, 3), 1, 2, 1),
    ("S.network", "leaky", (1, 1), 1, 2, 1),
    ("S.pad", "leaky", (3, 3), 1, 1, 1),
    ("S.pad", "leaky", (3, 3), 1, 2, 1),
    ("S.pad", "leaky", (5, 5), 4, 1, 1),
    ("S.pad", "leaky", (4,), 1, 1, 2),
)
# Kernel size, patch size, tokens on each axis, two queries. The third grid is so small that 10
# dimensions of other kernels are computed there.
BORDERS = (
    (3, 1, (6, 8), ((0, 0), (1, 1))),
    (3, 2, (3, 4), ((0, 0), (1, 1))),
    (5, 1, (4, 4), ((0, 0), (0, 1))),
    (5, 4, (2, 3), ((0, 0), (0, 1))),
)
QUADRATIC = ((1, 2), (3, 2), (10, 2), (40, 2), (3, 1))  # α, axes
BIAS = ((3, 9), (10, 100), (40, 1156))  # M, N
COMMUTANTS = (("bare", (2,)), ("bare", (3,)), ("bare", (5,)), ("bare", (2, 3)), ("torus", (5,)))
PIXEL_BOUNDS = ((3, 9, 1), (3, 3, 1), (3, 3, 3), (5, 25, 1))  # K, in, out
GENERIC_BOUNDS = (  # K, P, in, out, axes
    (3, 1, 3, 3, 2),
    (5, 1, 3, 2, 2),
    (9, 2, 1, 1, 2),
    (9, 2, 2, 1, 2),
    (9, 2, 3, 1, 2),
    (7, 3, 1, 1, 2),
    (13, 2, 3, 2, 2),
    (5, 16, 3, 3, 2),
    (21, 2, 1, 3, 1),
)
HEAD_DIMENSIONS = (  # K, P, channels, d_H, regime
    (3, 16, 3, 64, "limit"),
    (3, 16, 3, 64, "finite"),
    (5, 16, 3, 64, "limit"),
    (3, 4, 3, 12, "limit"),
    (3, 4, 3, 12, "finite"),
    (3, 1, 2, 1, "limit"),
)
NARROW_HEADS = (  # K, P, in, out, d_H, regime
    (3, 16, 3, 3, 64, "limit"),
    (3, 16, 3, 3, 64, "finite"),
    (3, 16, 1, 1, 64, "limit"),
    (3, 4, 2, 3, 5, "limit"),
    (5, 4, 3, 2, 5, "finite"),
    (3, 1, 3, 3, 2, "finite"),
)
BOX_BOUNDS = ((3, 2), (3, 3), (5, 2), (3, 16), (5, 16))  # K, P
HARD = (  # Two pixels, K = 1: head i attends to pixel i from every query.
    {"rows": [["1", "0"], ["1", "0"]]},
    {"rows": [["0", "1"], ["0", "1"]]},
)
SOFTMAX = (
    {"relative": [[-1, "1/9"], [0, "1"], [1, "1"]]},
    {"relative": [[-1, "1"], [0, "1"], [1, "1/9"]]},
)
NEAREST = tuple(
    {"rows": [[str(int(k == min(max(q + d, 0), 2))) for k in range(3)] for q in range(3)]}
    for d in (-1, 0, 1)
)
SHARED_MAPS: tuple[tuple[str, int, int, tuple[dict[str, Any], ...], str], ...] = (
    (
        "hard",
        1,
        2,
        HARD,
        "Two pixels, K = 1, head i attends to pixel i from every query: both spans hold, and no "
        "value maps compute the identity.",
    ),
    (
        "softmax",
        1,
        2,
        SOFTMAX,
        "The same with softmax heads of finite relative biases (0, 0, -ln 9) and (0, -ln 9, 0) at "
        "the shifts (0, +1, -1).",
    ),
    (
        "lemma2",
        3,
        3,
        NEAREST,
        "Lemma 2's own heads in the limit, on three pixels in a row with K = 3: the spans hold, "
        "and no value maps compute every zero-padded convolution.",
    ),
)
SATURATIONS = (  # α, the exponent of a threshold, whether the neighbours' weights survive it
    (
        46,
        -149,
        "survives",
        "At alpha = 46 the neighbours' weights exceed 2^-149, the smallest positive float32: "
        "attention is not one-hot.",
    ),
    (102, -149, "survives", "At alpha = 102 the neighbours' weights still exceed 2^-149."),
    (
        104,
        -150,
        "vanishes",
        "At alpha = 104 they are below 2^-150, half the smallest positive float32, and round to "
        "zero.",
    ),
    (86, -126, "survives", "At alpha = 86 they exceed 2^-126, the smallest normal float32."),
    (
        88,
        -126,
        "vanishes",
        "At alpha = 88 they are below 2^-126 and vanish where subnormal numbers are flushed to "
        "zero.",
    ),
)


DEPTHS = (  # K, P, tokens of the image, whether at finite scores
    ((3, 3), 1, (3, 4), True),
    ((3, 3), 1, (3, 4), False),
    ((1, 3), 1, (1, 2), True),
    ((4, 2), 1, (3, 4), True),
    ((5, 5), 4, (2, 3), True),
    ((5, 5), 1, (4, 4), False),
)
DEPTH_BOUNDS = ((3, 1, 3, 3, 2), (5, 1, 5, 5, 2), (5, 2, 2, 2, 2))  # K, P, in, out, axes
TILES = ((9, 2, 2, 1, 2), (9, 2, 3, 1, 2), (13, 2, 2, 2, 2), (19, 3, 2, 1, 2))
BARRIERS = ((1, 1, 5), (3, 1, 7), (5, 4, 8))  # K, P, tokens
LEAKS = ((1, 1), (1, 16))  # K, P of the layers that S.sharpness measures

Named = Iterator[tuple[str, dict[str, Any]]]


def certificates() -> Named:
    """File name and certificate, one after the other."""
    for part in (_equalities, _bounds, _counterexamples, _borders, _others, _second_set):
        for name, made in part():
            yield f"{name}.json", made
    yield from identity_certificates()
    yield from given_kernel_certificates()


def _equalities() -> Named:
    for claim, construction, opening in THEOREMS:
        for kernel, patch in SIZES:
            statement = (
                f"{opening} every {kernel}x{kernel} convolution of patches of size {patch}, "
                "zero-padded, for every image size and any channels."
            )
            made = equality_certificate(claim, statement, construction, (kernel, kernel), patch)
            yield f"{claim}-K{kernel}-P{patch}", made
    for claim, construction, size, patch, stride, dilation in VARIATIONS:
        shape = "x".join(str(k) for k in size)
        outside = "with any filling of the ring" if claim == "S.pad" else "zero-padded"
        statement = (
            f"The construction computes every {shape} convolution of patches of size {patch} with "
            f"stride {stride} and dilation {dilation}, {outside}, for every image size."
        )
        steps = {"stride": stride, "dilation": dilation}
        name = f"{claim}-K{size[0]}-P{patch}"
        name += "".join(f"-{step[0]}{by}" for step, by in steps.items() if by > 1)
        yield name, equality_certificate(claim, statement, construction, size, patch, **steps)


def _bounds() -> Named:
    for kernel, channels, out in PIXEL_BOUNDS:
        heads = min(kernel**2, channels * out)
        statement = (
            f"Some {kernel}x{kernel} kernel with {channels} input and {out} output channels takes "
            f"at least {heads} content-free heads on pixels."
        )
        made = pixel_bound_certificate("L21.theorem5", statement, kernel, channels, out)
        yield f"L21.theorem5-K{kernel}-in{channels}-out{out}", made
    for kernel, patch in BOX_BOUNDS:
        statement = (
            f"Some {kernel}x{kernel} kernel takes at least 9 content-free heads on patches of "
            f"size {patch}, on any image with two patches a side."
        )
        made = box_bound_certificate("L21.theorem6", statement, kernel, patch)
        yield f"L21.theorem6-K{kernel}-P{patch}-bound", made
    for kernel, patch, channels, out, axes in GENERIC_BOUNDS:
        statement = (
            f"Some kernel of size {kernel} on {axes} axes with {channels} input and {out} output "
            f"channels takes so many content-free heads on patches of size {patch}."
        )
        made = generic_bound_certificate(statement, kernel, patch, channels, out, axes=axes)
        yield f"S.heads-K{kernel}-P{patch}-in{channels}-out{out}-axes{axes}", made
    for kernel, patch, channels, width, regime in HEAD_DIMENSIONS:
        statement = (
            f"With heads of dimension {width} a {kernel}x{kernel} kernel of {channels} channels "
            f"on patches of size {patch} takes so many heads, and so many suffice."
        )
        sizes = (kernel, patch, channels, channels, width)
        made = head_dimension_certificate(statement, *sizes, regime)
        yield f"S.headdim-K{kernel}-P{patch}-d{width}-{regime}", made
    for kernel, patch, channels, out, width, regime in NARROW_HEADS:
        statement = (
            f"So many heads of dimension {width} are every {kernel}x{kernel} convolution of "
            f"{channels} input and {out} output channels on patches of size {patch}."
        )
        sizes = (kernel, patch, channels, out, width)
        made = narrow_heads_certificate(statement, *sizes, regime)
        yield f"S.width-K{kernel}-P{patch}-in{channels}-out{out}-d{width}-{regime}", made


def _counterexamples() -> Named:
    """What refutes C20.lemma3, C20.rank and C20.alpha46."""
    for name, kernel, pixels, heads, statement in SHARED_MAPS:
        made = no_shared_map_certificate(statement, kernel, pixels, heads)
        yield f"C20.lemma3-{name}", made
    statement = "With D_h = 1 and D_out = 3 the map of a head has rank 1, not D_out - D_h = 2."
    yield "C20.rank-h1-o3", rank_certificate(statement, [[1], [2], [3]], [[1, 1, 1]])
    for alpha, exponent, conclusion, statement in SATURATIONS:
        made = saturation_certificate(statement, alpha, exponent, conclusion)
        yield f"C20.alpha46-{alpha}-{conclusion}", made


def _borders() -> Named:
    statement = (
        "Without a ring no softmax layer computes the zero-padded 3x3 box sum of this image: "
        "it maps a constant image to a constant image, and the box sum does not."
    )
    for claim, patch in (("C20.theorem1", 1), ("C20.padding", 1), ("L21.theorem1", 2)):
        queries = ((0, 0), (1, 1))
        made = border_certificate(claim, statement, [[1] * 3] * 3, (6, 8), patch, queries)
        yield f"{claim}-border", made
    for kernel, patch, (rows, columns), queries in BORDERS:
        statement = (
            f"On a bare grid of {rows}x{columns} tokens of {patch}x{patch} pixels no softmax "
            f"layer is the zero-padded {kernel}x{kernel} box sum: the sums of the taps inside "
            f"differ between the queries {queries[0]} and {queries[1]}."
        )
        box, pixels = [[1] * kernel] * kernel, (rows * patch, columns * patch)
        made = border_certificate("S.padding", statement, box, pixels, patch, queries)
        yield f"S.padding-border-K{kernel}-P{patch}", made


def _others() -> Named:
    """What finite sharpness costs, and what commutes with the shifts of a grid."""
    for alpha, axes in QUADRATIC:
        statement = (
            f"Quadratic heads with alpha = {alpha} on {axes} axes are less than "
            f"1 - theta^-{axes} from the nearest key's row, at every query of every grid."
        )
        made = quadratic_variation_certificate("S.saturation", statement, alpha, axes)
        yield f"S.saturation-quadratic-{alpha}-axes{axes}", made
    for logit, keys in BIAS:
        statement = (
            f"A bias M = {logit} at one of {keys} keys leaves (N - 1)/(e^M + N - 1) to the others."
        )
        made = bias_variation_certificate("S.saturation", statement, logit, keys)
        yield f"S.saturation-bias-{logit}-N{keys}", made
    for boundary, grid in COMMUTANTS:
        shape = "x".join(str(n) for n in grid)
        statement = {
            "bare": f"On the bare grid {shape} only the multiples of the identity commute with the "
            "truncated shifts by one node, hence no grid convolution that looks at a neighbour.",
            "torus": f"On the torus {shape} the matrices that commute with the shifts by one node "
            "are a space as large as the span of its shifts.",
        }[boundary]
        made = commutant_certificate("A19.equivariance", statement, grid, boundary)
        yield f"A19.equivariance-{boundary}-{shape}", made


def _second_set() -> Named:
    """S.depth, S.tiles, S.barrier and S.sharpness."""
    for size, patch, (rows, columns), exact in DEPTHS:
        shape, form = "x".join(map(str, size)), "exact" if exact else "limit"
        statement = (
            f"On images of {rows}x{columns} tokens two layers compute every {shape} convolution of "
            f"patches of size {patch}, "
            + ("exactly at finite scores." if exact else "in the limit.")
        )
        made = two_layers_certificate(statement, size, patch, (rows, columns), exact=exact)
        yield f"S.depth-K{shape}-P{patch}-{form}", made
    for claim, bounds, layers in (
        ("S.depth", DEPTH_BOUNDS, "in the product over layers that stand one on another"),
        ("S.tiles", TILES, "with K = 2Pm + 1"),
    ):
        for kernel, patch, channels, out, axes in bounds:
            statement = (
                f"Some kernel of size {kernel} with {channels} input and {out} output channels "
                f"takes so many content-free heads on patches of size {patch}, {layers}."
            )
            sizes = (kernel, patch, channels, out)
            made = generic_bound_certificate(statement, *sizes, axes=axes, claim=claim)
            yield f"{claim}-K{kernel}-P{patch}-in{channels}-out{out}", made
    for kernel, patch, tokens in BARRIERS:
        statement = (
            f"On {tokens} tokens so many quadratic heads of one finite sharpness are no "
            f"convolution of size {kernel} on patches of size {patch}, exactly."
        )
        made = exponentials_certificate(statement, kernel, patch, tokens)
        yield f"S.barrier-K{kernel}-P{patch}-N{tokens}", made
    for kernel, patch in LEAKS:
        statement = "Two heads at finite scores, one of them uniform, are every 1x1 convolution."
        made = equality_certificate("S.sharpness", statement, "leaky", (kernel, kernel), patch)
        yield f"S.sharpness-K{kernel}-P{patch}", made
