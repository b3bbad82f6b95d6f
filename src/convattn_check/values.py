"""The coefficients V[h][δ] of the value maps: head h's map is Z_h(N) Σ_δ V[h][δ] Pattern_δ(W)."""

from fractions import Fraction

from convattn_check import reading as read
from convattn_check.attention import Attention
from convattn_check.cost import LARGEST_WHOLE
from convattn_check.reject import Reject, require, show

FAMILIES = {"sparse": ("entries",), "lagrange": ("master", "denominators")}
Column = dict[int, Fraction]


def read_values(value: object, attention: Attention, offsets: int) -> list[Column]:
    """For each offset the heads' coefficients, those that are not zero."""
    entry = value if isinstance(value, dict) else {}
    family = read.string(entry.get("family"), "values.family", FAMILIES)
    body = read.fields(value, "values", ["family", *FAMILIES[family]])
    if family == "sparse":
        return _sparse(body, len(attention.rows), offsets)
    return _lagrange(body, attention, offsets)


def _sparse(body: dict[str, object], heads: int, offsets: int) -> list[Column]:
    """[head, offset, coefficient], in the order of (head, offset), each pair once, no zeros."""
    columns: list[Column] = [{} for _ in range(offsets)]
    last: tuple[int, ...] = ()
    for index, entry in enumerate(read.items(body["entries"], "values.entries")):
        where = f"values.entries[{index}]"
        head, offset, coefficient = read.items(entry, where, 3)
        pair = read.integer(head, where, 0, heads - 1), read.integer(offset, where, 0, offsets - 1)
        number = read.rational(coefficient, where)
        if pair <= last or number == 0:
            raise Reject(
                "values",
                f"{where} is {show(entry)} after {last}, expected the next pair (head, offset) in "
                "order, with a coefficient that is not zero",
            )
        columns[pair[1]][pair[0]] = number
        last = pair
    return columns


def _lagrange(body: dict[str, object], attention: Attention, offsets: int) -> list[Column]:
    """V[h][δ] is the coefficient of z^h in master(z) / (z - base_δ), over denominators[δ].

    With weights base^h the heads' rows are powers: Σ_h V[h][δ] z^h is then the polynomial that is 0
    at 1 and at the other bases and 1 at base_δ, if master is Π (z - s) over s = 1 and all bases and
    the denominator is master'(base_δ). That it is so need not be checked here: whatever the numbers
    are, the identity of equality.py decides. The division by z - base is Horner's scheme.
    """
    bases = [base.numerator for base in attention.bases]
    require(
        list(attention.bases) == bases and list(attention.exponents) == list(range(offsets + 1)),
        "values",
        f"'lagrange' came with attention {attention.family!r}, expected 'scalar_power' with "
        f"integer bases and the exponents 0, 1, ..., {offsets}",
    )
    master = read.integers(body["master"], "values.master", offsets + 2)
    denominators = read.integers(body["denominators"], "values.denominators", offsets)
    for number in (*master, *denominators):
        require(
            abs(number) < LARGEST_WHOLE,
            "cost",
            f"values has {show(number)}, expected numbers below {show(LARGEST_WHOLE)}: give a "
            "smaller case",
        )
    require(master[-1] == 1, "values", f"master leads with {show(master[-1])}, expected 1")
    columns = []
    for base, denominator in zip(bases, denominators, strict=True):
        quotient = [0]
        for coefficient in reversed(master):
            quotient.append(quotient[-1] * base + coefficient)
        remainder = quotient.pop()
        require(
            remainder == 0 and denominator != 0,
            "values",
            f"at the base {base} the master is {show(remainder)}, expected 0, and the denominator "
            f"is {show(denominator)}, expected not 0",
        )
        low_first = enumerate(reversed(quotient))
        columns.append({head: Fraction(c, denominator) for head, c in low_first if c})
    return columns
