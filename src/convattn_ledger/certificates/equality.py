"""Certificates of equality: for every kernel, every image size, all channels.

What is certified is one identity between small rational matrices, see docs/certificates.md: with
attention rows Σ_δ c_hδ S_δ + (u0_h + u1_h N) J over their normaliser, and value maps Σ_δ V_hδ M_δ
times it, the layer is the convolution as soon as cᵀV = I and uᵀV = 0. The numbers below are those
that the constructions put into their layers, before any rounding.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.scalar import scalar_bases
from convattn_ledger.certificates.canonical import rational

LEAK = Fraction(1, 2)


def equality_body(
    construction: str,
    kernel_size: Sequence[int],
    patch_size: int | Sequence[int] = 1,
    *,
    stride: int | Sequence[int] = 1,
    dilation: int | Sequence[int] = 1,
) -> dict[str, Any]:
    """What certifies that a construction computes every convolution of these sizes.

    Args:
        construction: `"given"` (hard attention as a hypothesis), `"quadratic"`, `"bias"`,
            `"enumerated"`, `"polygon"`, `"absolute"` (limits), `"leaky"` or `"scalar"` (exact).
    """
    geometry = ConvolutionGeometry.of(kernel_size, patch_size, stride, dilation)
    attention, values, heads = _parts(construction, geometry)
    return {
        "kernel_size": list(geometry.kernel_size),
        "patch_size": list(geometry.patch_size),
        "dilation": list(geometry.dilation),
        "stride": list(geometry.stride),
        "stride_route": "tokens" if geometry.writes_stride_to_tokens else "subsample",
        "kernel": "every",
        "regime": "finite" if construction in ("leaky", "scalar") else "limit",
        "ring": [list(pair) for pair in geometry.ring],
        "offsets": [list(offset) for offset in geometry.offsets],
        "pattern": [index.tolist() for index in geometry.tap_index],
        "heads": heads,
        "attention": attention,
        "values": values,
    }


def _parts(
    construction: str, geometry: ConvolutionGeometry
) -> tuple[dict[str, Any], dict[str, Any], int]:
    """Attention, values and the number of heads."""
    count = geometry.heads
    targets: list[list[int] | None] = [list(offset) for offset in geometry.offsets]
    if construction == "leaky":
        keep = 1 - LEAK
        entries = [[h, h, rational(1 / keep)] for h in range(count)]
        entries += [[count, h, rational(-LEAK / keep)] for h in range(count)]
        leaky = {"family": "leaky_one_hot", "leak": rational(LEAK), "targets": [*targets, None]}
        return leaky, {"family": "sparse", "entries": entries}, count + 1
    if construction == "scalar":
        bases = scalar_bases(count)
        powers = {
            "family": "scalar_power",
            "bases": [rational(base) for base in bases],
            "exponents": list(range(count + 1)),
        }
        return powers, _lagrange(bases), count + 1
    attention: dict[str, Any] = {
        "family": "one_hot_limit",
        "score": construction,
        "targets": targets,
    }
    if construction == "enumerated":
        attention |= {"codes": list(range(count)), "spare": count}
    if construction == "polygon":
        attention |= {"corners": count, "codes": list(range(count))}
    if construction == "absolute":
        attention["forms"] = [absolute_form(offset) for offset in geometry.offsets]
    entries = [[h, h, "1"] for h in range(count)]
    return attention, {"family": "sparse", "entries": entries}, count


def _lagrange(bases: Sequence[int]) -> dict[str, Any]:
    """The master polynomial Π (z - s) over the nodes 1, t_δ, and Π_(s ≠ t_δ) (t_δ - s) for each δ.

    L_δ(z) = master(z)/((z - t_δ)·denominator_δ), so these few numbers hold the whole inverse.
    """
    nodes = (1, *bases)
    master = [1]
    for node in nodes:
        raised, lowered = [0, *master], [*(-node * c for c in master), 0]
        master = [a + b for a, b in zip(raised, lowered, strict=True)]
    denominators = []
    for base in bases:
        product = 1
        for node in nodes:
            product *= base - node if node != base else 1
        denominators.append(product)
    return {"family": "lagrange", "master": master, "denominators": denominators}


def absolute_form(target: Sequence[int]) -> list[list[int]]:
    """B with f(q) B f(k)ᵀ = -|k - q - target|² up to a term of the query; f(p) = (p, |p|², 1).

    Expand: -|k|² + 2 k·q + 2 k·target plus terms of q alone. The class `AbsoluteEncoding` holds
    such a form as W_qry W_keyᵀ.

    >>> absolute_form((1,))
    [[2, 0, 0], [0, 0, 0], [2, -1, 0]]
    """
    axes = len(target)
    form = [[0] * (axes + 2) for _ in range(axes + 2)]
    for axis in range(axes):
        form[axis][axis] = 2
        form[axes + 1][axis] = 2 * target[axis]
    form[axes + 1][axes] = -1
    return form
