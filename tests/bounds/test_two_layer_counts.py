"""Heads of two layers: the cheaper of two constructions, each with its reason."""

from convattn.bounds.generic_rank import GenericRank
from convattn.bounds.head_counts import HeadCount
from convattn.bounds.two_layer_counts import least_total, two_layer_counts

SINGLE = HeadCount(9, "S.heads", "proved", "one"), HeadCount(12, "S.kernel", "proved", "two")


def counts_of(rank, proved=True, shared=False, axes=(3, 5)):
    known = GenericRank(15, rank, rank, proved, 0, False, True)
    return two_layer_counts(known, axes, shared, SINGLE)


def summary(count):
    return int(count), count.claim, count.basis, count.reason


def test_the_least_sum_of_two_numbers():
    for product in range(1, 60):
        sums = [a + b for a in range(1, product + 1) for b in range(1, 61) if a * b >= product]
        assert least_total(product) == min(sums)


def test_a_head_for_each_offset_of_an_axis():
    """Of 3 and 5 offsets, where one layer takes more: 3 + 5, and one head more exactly."""
    counts = counts_of(7, proved=False)
    assert (counts.offsets, counts.rank) == (15, 7)
    for actual, more in ((counts.limit, 0), (counts.exact, 1)):
        text = "the least sum of two numbers whose product is at least " + str(7 + more)
        assert summary(actual.necessary) == (6, "S.depth", "checked", text)
        text = "a head for each offset of an axis"
        assert summary(actual.sufficient) == (8 + more, "S.depth", "proved", text)
        assert actual.each == (3, 5 + more)
        assert actual.difference == (
            f"6 heads in both layers together are shown to be necessary and {8 + more} to suffice; "
            "whether fewer do for every kernel is open"
        )


def test_a_layer_that_passes_on():
    """With 9 and 12 heads in one layer, and 11 offsets on an axis."""
    counts = counts_of(9, axes=(3, 11))
    text = "a layer that passes on, and S.heads"
    assert summary(counts.limit.sufficient) == (10, "S.depth", "proved", text)
    assert counts.limit.each == (1, 9)
    text = "a layer that passes on, and S.kernel"
    assert summary(counts.exact.sufficient) == (14, "S.depth", "proved", text)
    assert counts.exact.each == (2, 12)


def test_one_pattern_for_every_kernel_takes_all_offsets():
    """Whatever the rank is and however it is known: 8 = 3 + 5 and 4 · 4 ≥ 15, both for 15 + 1."""
    counts = counts_of(7, proved=False, shared=True)
    assert summary(counts.limit.necessary)[:3] == (8, "S.depth", "proved")
    assert summary(counts.exact.necessary)[:3] == (8, "S.depth", "proved")
    assert (counts.limit.difference, counts.limit.sufficient) == ("", 8)
    assert counts.exact.difference.startswith("8 heads")
