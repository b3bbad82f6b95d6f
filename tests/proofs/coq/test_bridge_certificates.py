"""The rows and the identities of certificates, against Coq's values of what is proved of them."""

from fractions import Fraction

import pytest
from proofs.coq.computed_values import as_fraction, binary, listed, rational

from convattn_check.attention import read_attention
from convattn_ledger.certificates.equality import absolute_form, equality_body

SIZES = [((1, 3), (1, 1)), ((3, 3), (1, 1)), ((3, 3), (2, 2)), ((3, 5), (1, 2))]


def certificate(construction: str, kernel, patch):
    """The offsets, the rows (c, u0, u1) as the checker reads them, and the body."""
    body = equality_body(construction, kernel, patch)
    offsets = [tuple(offset) for offset in body["offsets"]]
    rows = [
        [row.get(index, Fraction()) for index in range(len(offsets) + 2)]
        for row in read_attention(body["attention"], offsets, body["heads"]).rows
    ]
    return offsets, rows, body


def reach(offsets) -> tuple[int, int]:
    return max(first for first, _ in offsets), max(second for _, second in offsets)


def row_entries(coq_value, offsets, row, keys: int) -> list[Fraction]:
    """The softmax among so many keys: at every offset, and at a key that no offset reaches."""
    (m, n), (*c, u0, u1) = reach(offsets), row
    table = f"(fun i j => nth (0 : rat) {listed(map(rational, c))} (i * {2 * n + 1} + j))"
    entry = f"row_entry {m} {n} {table} {rational(u0)} {rational(u1)} {keys}"
    terms = [f"fraction ({entry} {rational(value)})" for value in (*c, Fraction())]
    return [as_fraction(value) for value in coq_value(listed(terms))]


@pytest.mark.parametrize("keys", [12, 20])
@pytest.mark.parametrize(("kernel", "patch"), SIZES[:3])
def test_leaky_rows(coq_value, kernel, patch, keys):
    """The checker's row of a leaky head is the softmax with the bias log(1 + N(1/ε - 1))."""
    offsets, rows, body = certificate("leaky", kernel, patch)
    uniform_weight = Fraction(body["attention"]["leak"])
    height = f"(leaky_weight {rational(uniform_weight)} {keys})"
    assert as_fraction(coq_value(f"fraction {height}")) == 1 + keys * (1 / uniform_weight - 1)
    at_target, elsewhere = (
        as_fraction(coq_value(f"fraction (finite_weight {keys} {height} {at})"))
        for at in ("true", "false")
    )
    for head in (0, len(offsets) // 2, len(offsets)):
        expected = [elsewhere] * (len(offsets) + 1)
        if head < len(offsets):
            assert rows[head][head] == 1 - uniform_weight
            expected[head] = at_target
        else:
            expected = [Fraction(1, keys)] * (len(offsets) + 1)
        actual = row_entries(coq_value, offsets, rows[head], keys)
        assert actual == expected
        planted = [*rows[head][:-1], rows[head][-1] + 1]
        if head < len(offsets):
            assert row_entries(coq_value, offsets, planted, keys) != expected


@pytest.mark.parametrize("keys", [10, 14])
def test_scalar_rows(coq_value, keys):
    """The checker's row of a scalar head is the softmax of the powers of its numbers."""
    offsets, rows, body = certificate("scalar", (1, 3), (1, 1))
    bases = [int(value) for value in body["attention"]["bases"]]
    table = f"(fun i j => nth 1 {listed(map(binary, bases))} (i * 3 + j)%N)"
    for power, row in enumerate(rows):
        weights = [base**power for base in bases] + [1]
        total = coq_value(f"weight_sum 0 1 {table} {keys} {power}")
        actual = row_entries(coq_value, offsets, row, keys)
        assert actual == [Fraction(weight, total) for weight in weights]
        assert row_entries(coq_value, offsets, row, keys + 1) != actual


def printed_sums(coq_value, first: list[list[Fraction]], values: list[list[Fraction]]):
    """Σ_h first_hi V_hδ for every i and δ, over the heads."""
    tables = (listed(listed(map(rational, row)) for row in matrix) for matrix in (first, values))
    entry = "listed_sum (fun h => nth 0 (nth [::] c h) i * nth 0 (nth [::] V h) d)"
    entry = f"fraction ({entry} (iota 0 {len(values)}))"
    numbers = f"[seq {entry} | d <- iota 0 {len(values[0])}]"
    first, second = tables
    printed = coq_value(
        f"let c : seq (seq rat) := {first} in let V : seq (seq rat) := {second} in "
        f"[seq {numbers} | i <- iota 0 {len(values[0]) + 2}]"
    )
    return [[as_fraction(value) for value in row] for row in printed]


def identity(count: int) -> list[list[int]]:
    """cᵀV = I, and u0 and u1 times V nothing."""
    return [[int(i == d) for d in range(count)] for i in range(count + 2)]


@pytest.mark.parametrize(("kernel", "patch"), SIZES)
def test_the_identity_of_leaky_heads(coq_value, kernel, patch):
    """The certificate's own numbers, which Coq multiplies and adds as rationals."""
    offsets, rows, body = certificate("leaky", kernel, patch)
    values = [[Fraction()] * len(offsets) for _ in range(body["heads"])]
    for head, offset, value in body["values"]["entries"]:
        values[head][offset] = Fraction(value)
    assert printed_sums(coq_value, rows, values) == identity(len(offsets))
    values[1][1] = -values[1][1]
    assert printed_sums(coq_value, rows, values) != identity(len(offsets))


@pytest.mark.parametrize(("kernel", "patch"), SIZES)
def test_the_identity_of_scalar_heads(coq_value, kernel, patch):
    """Σ_h (t_δ^h - 1) V_hδ' = [δ = δ'] and Σ_h V_hδ' = 0, each side times its denominator."""
    offsets, rows, body = certificate("scalar", kernel, patch)
    count = len(offsets)
    bases = [int(value) for value in body["attention"]["bases"]]
    assert [[base**power - 1 for base in bases] + [0, 1] for power in range(count + 1)] == rows
    terms = f"let t := {listed(map(binary, bases))} in let nodes := 1 :: t in "
    over = f"(iota 0 {count + 1})"
    weighted = f"listed_sum (fun h => (z ^+ h - 1) * nth 0 (numerators nodes b) h) {over}"
    plain = f"listed_sum (fun h => nth 0 (numerators nodes b) h) {over}"
    product, total, scale = coq_value(
        f"{terms} ([seq [seq {weighted} | b <- t] | z <- t], [seq {plain} | b <- t], "
        "[seq denominator nodes b | b <- t])"
    )
    assert scale == [int(value) for value in body["values"]["denominators"]]
    assert total == [0] * count
    assert product == [[scale[d] * (i == d) for d in range(count)] for i in range(count)]


@pytest.mark.parametrize("target", [(0, 0), (1, -2), (-3, 2)])
def test_the_form_of_absolute_positions(coq_value, target):
    """B of each head; its last column is free, and the library leaves it empty."""
    form = f"absolute_form {binary(target[0])} {binary(target[1])} (fun=> 0)"
    places = [f"(@Ordinal 4 {place} isT)" for place in range(4)]
    printed = coq_value(listed(listed(f"{form} {i} {j}" for j in places) for i in places))
    assert absolute_form(target) == printed
    assert absolute_form((target[0], target[1] + 1)) != printed
