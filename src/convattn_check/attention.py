"""What the heads attend to, at a query whose every offset is a key.

A head's row over the N keys, times its normaliser Z(N) > 0, is

    Σ_δ c_δ S_δ + (u0 + u1·N) J,

S_δ the unit row at key q + δ and J the uniform row, 1/N each. So one key at offset δ has the weight
c_δ + u1 + u0/N, every key that no offset reaches u1 + u0/N, and Z(N) = Σ_δ c_δ + u0 + u1·N.

A head is kept as its row (c_1, …, c_T, u0, u1), a vector of T + 2 rationals, sparse: a dictionary
from the index to what is not zero.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from convattn_check import reading as read
from convattn_check.reject import Reject, require, show

MOST_BITS = 2**27  # of all the powers of a "scalar_power" certificate together
LONGEST_POWER = 2**12  # bits of one of them, above and below the line
FAMILIES = {  # the first is a limit of softmaxes, the others are softmaxes of finite scores
    "one_hot_limit": ("score", "targets"),
    "leaky_one_hot": ("leak", "targets"),
    "scalar_power": ("bases", "exponents"),
}
SCORES = {
    "given": (),
    "bias": (),
    "quadratic": (),
    "enumerated": ("codes", "spare"),
    "polygon": ("corners", "codes"),
    "absolute": ("forms",),
}
Offset = tuple[int, ...]
Row = dict[int, Fraction]


class Attention(NamedTuple):
    """The heads' rows; bases and exponents only for "scalar_power", a score for a limit."""

    family: str
    rows: list[Row]
    score: str = ""
    bases: Sequence[Fraction] = ()
    exponents: Sequence[int] = ()


def read_attention(value: object, offsets: Sequence[Offset], heads: int) -> Attention:
    """The rows of so many heads, of the family that the certificate names."""
    entry = value if isinstance(value, dict) else {}
    family = read.string(entry.get("family"), "attention.family", FAMILIES)
    names = ["family", *FAMILIES[family]]
    if family == "one_hot_limit":
        names += SCORES[read.string(entry.get("score"), "attention.score", SCORES)]
    body = read.fields(value, "attention", names)
    one_each = FAMILIES[family][-1]
    count = len(read.items(body[one_each], f"attention.{one_each}"))
    require(count == heads, "heads", f"heads is {heads}, but the attention describes {count}")
    if family == "one_hot_limit":
        return _one_hot_limit(body, offsets)
    return _leaky_one_hot(body, offsets) if family == "leaky_one_hot" else _powers(body, offsets)


def _one_hot_limit(body: dict[str, object], offsets: Sequence[Offset]) -> Attention:
    """c = 1 at the target, for one of these reasons (α, M → ∞; the targets are keys).

    "given": it is the hypothesis. "bias": b_target = M, else 0. "quadratic": -α|δ - target|² has
    its only maximum at the target. "enumerated", "polygon", "absolute": see below.
    """
    items = read.items(body["targets"], "attention.targets")
    targets = [_target(target, offsets) for target in items]
    if body["score"] == "enumerated":
        _require_codes(body, len(offsets))
    if body["score"] == "polygon":
        _require_corners(body, len(offsets))
    if body["score"] == "absolute":
        _require_forms(body, len(offsets[0]), [offsets[target] for target in targets])
    rows = [{target: Fraction(1)} for target in targets]
    return Attention("one_hot_limit", rows, str(body["score"]))


def _require_codes(body: dict[str, object], length: int) -> None:
    """-α(n - n_target)², n the code of a key's shift, is largest at the target alone.

    So it is if no two offsets share a code and the spare code, which all other shifts have, is none
    of them. With r = (n, n²) the score is linear in r up to a constant: D_p = 2.
    """
    codes = read.entries(body["codes"], "attention.codes", length)
    spare = read.integer(body["spare"], "attention.spare")
    require(
        len({*codes, spare}) == len(codes) + 1,
        "attention",
        f"codes {show(codes)} and spare {show(spare)}, expected distinct integers",
    )


def _require_corners(body: dict[str, object], length: int) -> None:
    """α cos(2π(n - n_target)/corners) at the offsets, 0 elsewhere, is largest at the target alone.

    The cosine is 1 where n = n_target modulo the number of corners, and below 1 elsewhere. With
    r = (cos 2πn/corners, sin 2πn/corners), and 0 for all other shifts, the score is linear in r:
    D_p = 2.
    """
    corners = read.integer(body["corners"], "attention.corners", 1)
    codes = read.entries(body["codes"], "attention.codes", length)
    require(
        len({code % corners for code in codes}) == len(codes),
        "attention",
        f"codes {show(codes)}, expected integers that differ modulo {corners}",
    )


def _require_forms(body: dict[str, object], axes: int, targets: Sequence[Offset]) -> None:
    """f(q) B f(k)ᵀ = -|k - q - target|² + g(q), with f(p) = (p_1, …, |p|², 1).

    g(q) does not matter: a softmax over the keys k ignores it. The right-hand side is
    Σ_a 2(q_a + target_a) k_a - |k|² + g(q), so, as the functions in f are linearly independent,
    column k_a of B is 2 at q_a, 2·target_a at 1, else 0; column |k|² is -1 at 1, else 0; column 1
    is free. Absolute positions give the quadratic score, then.
    """
    size = axes + 2
    forms = read.array(
        body["forms"],
        "attention.forms",
        lambda form, at: read.matrix(form, at, size, size),
        len(targets),
    )
    for head, (form, target) in enumerate(zip(forms, targets, strict=True)):
        expected = [[2 if a == b else 0 for b in range(axes)] + [0] for a in range(size - 1)]
        expected.append([2 * t for t in target] + [-1])
        columns = [row[:-1] for row in form]
        require(
            columns == expected,
            "attention",
            f"form {head} is {show(columns)} without its last column, expected {show(expected)}",
        )


def _leaky_one_hot(body: dict[str, object], offsets: Sequence[Offset]) -> Attention:
    """c = 1 - leak at the target and u0 = leak; a null target is the uniform head, u0 = 1.

    Weights leak/N, and 1 - leak + leak/N at the target: the softmax of the bias
    log(1 + N(1/leak - 1)) at the target, 0 elsewhere.
    """
    leak = read.rational(body["leak"], "attention.leak")
    require(0 < leak < 1, "attention", f"leak is {show(leak)}, expected 0 < leak < 1")
    items = read.items(body["targets"], "attention.targets")
    targets = [None if target is None else _target(target, offsets) for target in items]
    uniform = len(offsets)
    rows = [
        {uniform: Fraction(1)} if target is None else {target: 1 - leak, uniform: leak}
        for target in targets
    ]
    return Attention("leaky_one_hot", rows)


def _powers(body: dict[str, object], offsets: Sequence[Offset]) -> Attention:
    """Weights base_δ^e at offset δ, 1 elsewhere: c = base^e - 1, u1 = 1.

    The softmax of the scores e·log(base_δ), 0 elsewhere: D_p = 1.
    """
    bases = read.rationals(body["bases"], "attention.bases", len(offsets))
    require(
        min(bases) > 0 and len({Fraction(1), *bases}) == len(bases) + 1,
        "attention",
        f"bases {show([str(base) for base in bases])}, expected distinct positive rationals but 1",
    )
    exponents = read.integers(
        body["exponents"], "attention.exponents", None, 0, read.LARGEST_POSITION
    )
    require(
        len(set(exponents)) == len(exponents),
        "attention",
        f"exponents {show(exponents)}, expected distinct integers",
    )
    bits = [base.numerator.bit_length() + base.denominator.bit_length() for base in bases]
    long, all_bits = max(bits) * max(exponents), sum(bits) * sum(exponents)
    require(
        long <= LONGEST_POWER and all_bits <= MOST_BITS,
        "cost",
        f"the powers take up to {long} bits each and {all_bits} together, expected up to "
        f"{LONGEST_POWER} and {MOST_BITS}: give a smaller case, shorter bases or lower exponents",
    )
    rows = [
        {index: base**exponent - 1 for index, base in enumerate(bases)}
        | {len(offsets) + 1: Fraction(1)}
        for exponent in exponents
    ]
    return Attention("scalar_power", rows, bases=bases, exponents=exponents)


def _target(value: object, offsets: Sequence[Offset]) -> int:
    target = tuple(read.integers(value, "a target", len(offsets[0])))
    if target not in offsets:
        raise Reject("attention", f"the target {show(target)} is not an offset")
    return offsets.index(target)
