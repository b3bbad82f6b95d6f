import certificate_builder as build
import pytest
from certificate_cases import CASES, changed, drop, put, verdict_after, verdict_on


def one_more_head(target):
    """A further head that the values do not use: the mathematics is right, the count is not."""

    def change(body):
        body["attention"]["targets"].append(target)
        body["heads"] += 1

    return change


def all_at_once(*changes):
    def change(body):
        for each in changes:
            each(body)

    return change


@pytest.mark.parametrize(
    ("name", "change", "code"),
    [
        ("wo", put(["extra"], 1), "malformed"),
        ("wo", drop(["ring"]), "malformed"),
        ("wo", put(["kernel"], "some"), "malformed"),
        ("wo", put(["kernel_size"], [5]), "malformed"),
        ("wo", put(["kernel_size"], []), "malformed"),
        ("wo", put(["kernel_size"], [5, 3, 3]), "malformed"),
        ("wo", put(["kernel_size"], [65, 3]), "range"),
        ("wo", put(["patch_size"], [0, 3]), "range"),
        ("wo", put(["dilation"], [True, 1]), "malformed"),
        ("wo", put(["stride"], [1, "1"]), "malformed"),
        ("wo", put(["stride_route"], "pixels"), "malformed"),
        ("wo", put(["regime"], "both"), "malformed"),
        ("wo", put(["kernel_size"], [5, 9]), "offsets"),
        ("wo", put(["kernel_size"], [3, 3]), "pattern"),
        ("wo", put(["offsets"], "all"), "offsets"),
        ("wo", drop(["pattern", 0]), "malformed"),
        ("wo", put(["pattern", 1], []), "pattern"),
        ("wo", put(["pattern", 0, 0, 0, 0], 1), "pattern"),
        ("wo", put(["pattern", 1, 0, 0, 2], False), "pattern"),
        ("wo", put(["ring"], [[1, 1]]), "malformed"),
        ("wo", put(["ring", 0], [1, 1, 1]), "malformed"),
        ("wo", put(["ring", 1], [4097, 1]), "range"),
        ("wo", put(["heads"], 8), "heads"),
        ("wo", put(["heads"], 0), "range"),
        ("finite", one_more_head(None), "heads"),
        ("stride_pixels", put(["stride_route"], "tokens"), "stride"),
    ],
)  # fmt: skip
def test_planted(name, change, code):
    verdict = verdict_after(name, change)
    assert not verdict.accepted
    assert verdict.code == code, verdict


def test_the_identity_names_the_sum_that_fails():
    verdict = verdict_after("finite", put(["values", "entries", 9, 2], "-1/3"))
    assert verdict.code == "identity"
    assert "u0" in verdict.reason


def test_fewer_heads_than_offsets_cannot_hold_the_identity():
    """Stating fewer heads, targets and values alike, is caught by the count and by the sums."""

    def change(body):
        body["heads"] -= 1
        body["attention"]["targets"].pop()
        body["values"]["entries"].pop()

    assert verdict_after("wo", change).code == "heads"


def test_a_wider_ring_and_another_order_of_heads_are_fine():
    assert verdict_after("wo", put(["ring"], [[5, 1], [1, 7]])).accepted
    body = CASES["wo"]["body"]
    swapped = all_at_once(
        put(["attention", "targets"], body["offsets"]),
        put(["values"], build.sparse((h, h, 1) for h in range(9))),
    )
    assert verdict_on(changed(CASES["wo"], swapped)).accepted


def test_too_many_offsets_are_refused_by_name():
    certificate = build.limit_equality("S.dp2", "bias", kernel=(33, 32))
    verdict = verdict_on(certificate)
    assert verdict.code == "range"
    assert "1024 offsets" in verdict.reason


@pytest.mark.parametrize(
    "make",
    [
        lambda: build.limit_equality("S.dp2", "enumerated", kernel=(32, 32)),
        lambda: build.leaky_equality(kernel=(11, 11)),
        lambda: build.leaky_equality(kernel=(5, 5), patch=(16, 16)),
        lambda: build.power_equality(kernel=(11, 11), lagrange=True),
    ],
)
def test_the_largest_sizes_are_accepted(make):
    assert verdict_on(make()).accepted
