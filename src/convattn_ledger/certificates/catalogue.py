"""Every committed certificate, by file name: a table of makers, names, statements and sizes."""

from collections.abc import Callable, Iterator
from inspect import signature
from typing import Any

from convattn_ledger.certificates.canonical import certificate
from convattn_ledger.certificates.commutant import commutant_body
from convattn_ledger.certificates.counterexample import (
    border_body,
    no_shared_map_body,
    rank_body,
    saturation_body,
)
from convattn_ledger.certificates.equality import equality_body
from convattn_ledger.certificates.given_kernel import (
    approximation_body,
    kernel_heads_body,
    lifted_heads_body,
)
from convattn_ledger.certificates.head_dimension import head_dimension_body
from convattn_ledger.certificates.identity import identity_bodies
from convattn_ledger.certificates.lower_bound import (
    box_bound_body,
    generic_bound_body,
    pixel_bound_body,
)
from convattn_ledger.certificates.narrow_heads import narrow_heads_body
from convattn_ledger.certificates.total_variation import (
    bias_variation_body,
    quadratic_variation_body,
)
from convattn_ledger.certificates.two_layers import exponentials_body, two_layers_body

Named = Iterator[tuple[str, dict[str, Any]]]
Maker = Callable[..., dict[str, Any]]
KINDS: dict[Maker, str] = {
    approximation_body: "approximation",
    bias_variation_body: "total_variation",
    border_body: "border",
    box_bound_body: "lower_bound",
    commutant_body: "commutant",
    equality_body: "equality",
    exponentials_body: "exponentials",
    generic_bound_body: "lower_bound",
    head_dimension_body: "head_dimension",
    kernel_heads_body: "kernel_heads",
    lifted_heads_body: "kernel_heads",
    narrow_heads_body: "narrow_heads",
    no_shared_map_body: "no_shared_map",
    pixel_bound_body: "lower_bound",
    quadratic_variation_body: "total_variation",
    rank_body: "rank",
    saturation_body: "saturation",
    two_layers_body: "two_layers",
}

THEOREM_SIZES = ((3, 1), (5, 1), (11, 1), (3, 2), (3, 16), (5, 16), (11, 4))
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
# Unnormalised weights of relative heads at the shifts -2, …, 2 of three pixels in a row.
THREE_PIXELS = tuple(
    {"relative": [[shift - 2, weight] for shift, weight in enumerate(weights)]}
    for weights in ("12413", "31125", "25111")
)
CONTENT = (
    "Some {kernel_size}x{kernel_size} kernel takes so many heads whose weights are continuous in "
    "the image at zero: its derivative there."
)
BARE = (
    "Without a ring no softmax layer computes the zero-padded 3x3 box sum of this image: it maps "
    "a constant image to a constant image, and the box sum does not."
)
# The maker of the body; the file's name and the statement, in which the maker's arguments and what
# the body has may stand by their names; and the arguments.
TABLE: tuple[tuple[Maker, str, str, tuple[tuple[Any, ...], ...]], ...] = (
    (
        pixel_bound_body,
        "L21.theorem5-K{kernel_size}-in{in_channels}-out{out_channels}",
        "Some {kernel_size}x{kernel_size} kernel with {in_channels} input and {out_channels} "
        "output channels takes at least {heads} content-free heads on pixels.",
        ((3, 9, 1), (3, 3, 1), (3, 3, 3), (5, 25, 1)),
    ),
    (
        box_bound_body,
        "L21.theorem6-K{kernel_size}-P{patch_size}-bound",
        "Some {kernel_size}x{kernel_size} kernel takes at least 9 content-free heads on patches "
        "of size {patch_size}, on any image with two patches a side.",
        ((3, 2), (3, 3), (5, 2), (3, 16), (5, 16)),
    ),
    (
        generic_bound_body,
        "S.heads-K{kernel_size}-P{patch_size}-in{in_channels}-out{out_channels}-axes{axes}",
        "Some kernel of size {kernel_size} on {axes} axes with {in_channels} input and "
        "{out_channels} output channels takes so many content-free heads on patches of size "
        "{patch_size}.",
        (
            (3, 1, 3, 3, 2),
            (5, 1, 3, 2, 2),
            (9, 2, 1, 1, 2),
            (9, 2, 2, 1, 2),
            (9, 2, 3, 1, 2),
            (7, 3, 1, 1, 2),
            (13, 2, 3, 2, 2),
            (5, 16, 3, 3, 2),
            (21, 2, 1, 3, 1),
        ),
    ),
    (
        generic_bound_body,
        "S.depth-K{kernel_size}-P{patch_size}-in{in_channels}-out{out_channels}",
        "Some kernel of size {kernel_size} with {in_channels} input and {out_channels} output "
        "channels takes so many content-free heads on patches of size {patch_size}, in the "
        "product over layers that stand one on another.",
        ((3, 1, 3, 3), (5, 1, 5, 5), (5, 2, 2, 2)),
    ),
    (
        generic_bound_body,
        "S.tiles-K{kernel_size}-P{patch_size}-in{in_channels}-out{out_channels}",
        "Some kernel of size {kernel_size} with {in_channels} input and {out_channels} output "
        "channels takes so many content-free heads on patches of size {patch_size}, with K = 2Pm "
        "+ 1.",
        ((9, 2, 2, 1), (9, 2, 3, 1), (13, 2, 2, 2), (19, 3, 2, 1)),
    ),
    (
        pixel_bound_body,
        "S.content-K{kernel_size}-in{in_channels}-out{out_channels}",
        CONTENT,
        ((3, 9, 1), (3, 3, 3), (3, 2, 2)),
    ),
    (
        box_bound_body,
        "S.content-K{kernel_size}-P{patch_size}",
        CONTENT,
        ((3, 2), (5, 2), (3, 16)),
    ),
    (
        head_dimension_body,
        "S.headdim-K{kernel_size}-P{patch_size}-d{head_dim}-{regime}",
        "With heads of dimension {head_dim} a {kernel_size}x{kernel_size} kernel of "
        "{in_channels} channels on patches of size {patch_size} takes so many heads, and so many "
        "suffice.",
        (
            (3, 16, 3, 3, 64, "limit"),
            (3, 16, 3, 3, 64, "finite"),
            (5, 16, 3, 3, 64, "limit"),
            (3, 4, 3, 3, 12, "limit"),
            (3, 4, 3, 3, 12, "finite"),
            (3, 1, 2, 2, 1, "limit"),
        ),
    ),
    (
        narrow_heads_body,
        "S.width-K{kernel_size}-P{patch_size}-in{in_channels}-out{out_channels}-d{head_dim}-{regime}",
        "So many heads of dimension {head_dim} are every {kernel_size}x{kernel_size} convolution "
        "of {in_channels} input and {out_channels} output channels on patches of size "
        "{patch_size}.",
        (
            (3, 16, 3, 3, 64, "limit"),
            (3, 16, 3, 3, 64, "finite"),
            (3, 16, 1, 1, 64, "limit"),
            (3, 4, 2, 3, 5, "limit"),
            (5, 4, 3, 2, 5, "finite"),
            (3, 1, 3, 3, 2, "finite"),
        ),
    ),
    (
        no_shared_map_body,
        "C20.lemma3-hard",
        "Two pixels, K = 1, head i attends to pixel i from every query: both spans hold, and no "
        "value maps compute the identity.",
        ((1, 2, HARD),),
    ),
    (
        no_shared_map_body,
        "C20.lemma3-softmax",
        "The same with softmax heads of finite relative biases (0, 0, -ln 9) and (0, -ln 9, 0) "
        "at the shifts (0, +1, -1).",
        ((1, 2, SOFTMAX),),
    ),
    (
        no_shared_map_body,
        "C20.lemma3-lemma2",
        "Lemma 2's own heads in the limit, on three pixels in a row with K = 3: the spans hold, "
        "and no value maps compute every zero-padded convolution.",
        ((3, 3, NEAREST),),
    ),
    (
        no_shared_map_body,
        "S.lemma3-heads3-K{kernel_size}",
        "3 softmax heads with finite relative biases on three pixels span what a kernel of size "
        "{kernel_size} reads at each query, and no value maps serve all.",
        ((1, 3, THREE_PIXELS), (3, 3, THREE_PIXELS)),
    ),
    (
        rank_body,
        "C20.rank-h1-o3",
        "With D_h = 1 and D_out = 3 the map of a head has rank 1, not D_out - D_h = 2.",
        (([[1], [2], [3]], [[1, 1, 1]]),),
    ),
    (
        saturation_body,
        "C20.alpha46-{alpha}-{conclusion}",
        "At alpha = 46 the neighbours' weights exceed 2^-149, the smallest positive float32: "
        "attention is not one-hot.",
        ((46, -149, "survives"),),
    ),
    (
        saturation_body,
        "C20.alpha46-{alpha}-{conclusion}",
        "At alpha = 102 the neighbours' weights still exceed 2^-149.",
        ((102, -149, "survives"),),
    ),
    (
        saturation_body,
        "C20.alpha46-{alpha}-{conclusion}",
        "At alpha = 104 they are below 2^-150, half the smallest positive float32, and round to "
        "zero.",
        ((104, -150, "vanishes"),),
    ),
    (
        saturation_body,
        "C20.alpha46-{alpha}-{conclusion}",
        "At alpha = 86 they exceed 2^-126, the smallest normal float32.",
        ((86, -126, "survives"),),
    ),
    (
        saturation_body,
        "C20.alpha46-{alpha}-{conclusion}",
        "At alpha = 88 they are below 2^-126 and vanish where subnormal numbers are flushed to "
        "zero.",
        ((88, -126, "vanishes"),),
    ),
    (
        border_body,
        "C20.theorem1-border",
        BARE,
        ((3, 1, (6, 8), ((0, 0), (1, 1))),),
    ),
    (
        border_body,
        "C20.padding-border",
        BARE,
        ((3, 1, (6, 8), ((0, 0), (1, 1))),),
    ),
    (
        border_body,
        "L21.theorem1-border",
        BARE,
        ((3, 2, (3, 4), ((0, 0), (1, 1))),),
    ),
    (
        border_body,
        "S.padding-border-K{kernel_size}-P{patch_size}",
        "On a bare grid of {tokens} tokens of {patch_size}x{patch_size} pixels no softmax layer "
        "is the zero-padded {kernel_size}x{kernel_size} box sum: the sums of the taps inside "
        "differ between the queries {queries[0]} and {queries[1]}.",
        (
            (3, 1, (6, 8), ((0, 0), (1, 1))),
            (3, 2, (3, 4), ((0, 0), (1, 1))),
            (
                5,
                1,
                (4, 4),
                ((0, 0), (0, 1)),
            ),  # so small that 10 dimensions of other kernels are computed there
            (5, 4, (2, 3), ((0, 0), (0, 1))),
        ),
    ),
    (
        quadratic_variation_body,
        "S.saturation-quadratic-{alpha}-axes{axes}",
        "Quadratic heads with alpha = {alpha} on {axes} axes are less than 1 - theta^-{axes} "
        "from the nearest key's row, at every query of every grid.",
        ((1, 2), (3, 2), (10, 2), (40, 2), (3, 1)),
    ),
    (
        bias_variation_body,
        "S.saturation-bias-{logit}-N{keys}",
        "A bias M = {logit} at one of {keys} keys leaves (N - 1)/(e^M + N - 1) to the others.",
        ((3, 9), (10, 100), (40, 1156)),
    ),
    (
        commutant_body,
        "A19.equivariance-bare-{grid}",
        "On the bare grid {grid} only the multiples of the identity commute with the truncated "
        "shifts by one node, hence no grid convolution that looks at a neighbour.",
        (((2,), "bare"), ((3,), "bare"), ((5,), "bare"), ((2, 3), "bare")),
    ),
    (
        commutant_body,
        "A19.equivariance-torus-{grid}",
        "On the torus {grid} the matrices that commute with the shifts by one node are a space "
        "as large as the span of its shifts.",
        (((5,), "torus"),),
    ),
    (
        two_layers_body,
        "S.depth-K{kernel_size}-P{patch_size}-exact",
        "On images of {image} tokens two layers compute every {kernel_size} convolution of "
        "patches of size {patch_size}, exactly at finite scores.",
        (
            ((3, 3), 1, (3, 4), True),
            ((1, 3), 1, (1, 2), True),
            ((4, 2), 1, (3, 4), True),
            ((5, 5), 4, (2, 3), True),
        ),
    ),
    (
        two_layers_body,
        "S.depth-K{kernel_size}-P{patch_size}-limit",
        "On images of {image} tokens two layers compute every {kernel_size} convolution of "
        "patches of size {patch_size}, in the limit.",
        (((3, 3), 1, (3, 4), False), ((5, 5), 1, (4, 4), False)),
    ),
    (
        exponentials_body,
        "S.barrier-K{kernel_size}-P{patch_size}-N{tokens}",
        "On {tokens} tokens so many quadratic heads of one finite sharpness are no convolution "
        "of size {kernel_size} on patches of size {patch_size}, exactly.",
        ((1, 1, 5), (3, 1, 7), (5, 4, 8)),
    ),
    (
        equality_body,
        "S.sharpness-K1-P{patch_size}",
        "Two heads at finite scores, one of them uniform, are every 1x1 convolution.",
        (("leaky", (1, 1), 1), ("leaky", (1, 1), 16)),
    ),
    (
        kernel_heads_body,
        "S.kernel-{kernel}-P{patch_size}",
        "At finite scores the kernel '{kernel}' on patches of size {patch_size} takes exactly "
        "one content-free head more than its flattened form has rank.",
        (
            ("box", 1),
            ("laplace", 1),
            ("sobel", 1),
            ("texture", 1),
            ("cross", 1),
            ("box", 2),
            ("laplace", 2),
            ("box", 16),
        ),
    ),
    (
        lifted_heads_body,
        "S.group-{group}-K{kernel_size}-filters{filters}-in{in_channels}",
        "At finite scores the lifting {group} convolution of these {kernel_size}x{kernel_size} "
        "filters, {filters} for each of {in_channels} channels, takes exactly {heads} content-free "
        "heads.",
        (
            *((3, group, filters, 1) for group in ("p4", "p4m") for filters in (1, 2, 3)),
            *((5, "p4", filters, 1) for filters in (1, 6, 7)),
            *((5, "p4m", filters, 1) for filters in (1, 2, 3, 4, 5, 6)),
            *((4, group, 1, 2) for group in ("p4", "p4m")),
        ),
    ),
    (
        approximation_body,
        "S.approx-{kernel}-P{patch_size}-heads{heads}",
        "{heads} content-free heads come within one head of the optimum for the kernel "
        "'{kernel}' on patches of size {patch_size}.",
        (("texture", 2, 1), ("texture", 4, 1), ("box", 3, 2), ("laplace", 4, 2), ("box", 4, 16)),
    ),
)


def certificates() -> Named:
    """File name and certificate, one after the other."""
    yield from _equalities()
    for make, name, statement, rows in TABLE:
        for row in rows:
            body = make(*row)
            arguments = zip(signature(make).parameters, row, strict=False)
            words = body | {key: _sides(value) for key, value in arguments}
            claim, text = name.partition("-")[0], statement.format_map(words)
            yield f"{name.format_map(words)}.json", certificate(claim, KINDS[make], text, body)
    for claim, name, statement, body in identity_bodies():
        yield f"{claim}-{name}.json", certificate(claim, "identity", statement, body)


def make_certificate(
    claim: str, statement: str, maker: Maker, *arguments: Any, **options: Any
) -> dict[str, Any]:
    """The certificate whose body a maker makes of these arguments."""
    return certificate(claim, KINDS[maker], statement, maker(*arguments, **options))


def _sides(value: Any) -> Any:
    """Sizes of axes as "3x4"; anything else as it is."""
    sides = isinstance(value, tuple) and all(isinstance(side, int) for side in value)
    return "x".join(map(str, value)) if sides else value


def _equalities() -> Named:
    for claim, construction, opening in THEOREMS:
        for kernel, patch in THEOREM_SIZES:
            statement = (
                f"{opening} every {kernel}x{kernel} convolution of patches of size {patch}, "
                "zero-padded, for every image size and any channels."
            )
            certificate = make_certificate(
                claim, statement, equality_body, construction, (kernel, kernel), patch
            )
            yield f"{claim}-K{kernel}-P{patch}.json", certificate
    for claim, construction, size, patch, stride, dilation in VARIATIONS:
        outside = "with any filling of the ring" if claim == "S.pad" else "zero-padded"
        statement = (
            f"The construction computes every {_sides(size)} convolution of patches of size "
            f"{patch} with stride {stride} and dilation {dilation}, {outside}, for every image "
            "size."
        )
        steps = {"stride": stride, "dilation": dilation}
        name = f"{claim}-K{size[0]}-P{patch}"
        name += "".join(f"-{step[0]}{by}" for step, by in steps.items() if by > 1)
        certificate = make_certificate(
            claim, statement, equality_body, construction, size, patch, **steps
        )
        yield f"{name}.json", certificate
