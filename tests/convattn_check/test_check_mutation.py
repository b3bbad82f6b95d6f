"""Any number changed anywhere is found: by the digests, and, where it matters, without them."""

import copy
from fractions import Fraction

import certificate_builder as build
import pytest
from certificate_cases import CASES, verdict_on
from hypothesis import given
from hypothesis import strategies as st


def numbers(value, path=()):
    """The paths to every integer and every rational string below."""
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        return [place for key, item in pairs for place in numbers(item, (*path, key))]
    if isinstance(value, str):
        try:
            Fraction(value)
        except ValueError:
            return []
        return [path]
    return [path] if isinstance(value, int) else []


def with_another_number(certificate, path, step):
    result = copy.deepcopy(certificate)
    *parents, last = path
    place = result
    for key in parents:
        place = place[key]
    old = place[last]
    place[last] = old + int(step) if isinstance(old, int) else str(Fraction(old) + step)
    return result


steps = st.one_of(st.integers(-3, 3).map(Fraction), st.fractions(-2, 2, max_denominator=5)).filter(
    lambda step: int(step) != 0
)
names = st.sampled_from(sorted(CASES))


@given(names, st.data(), steps)
def test_with_digests_no_number_can_be_changed(name, data, step):
    body = CASES[name]["body"]
    path = data.draw(st.sampled_from(numbers(body)))
    certificate = with_another_number(CASES[name], ("body", *path), step)
    verdict = verdict_on(certificate)
    assert not verdict.accepted
    assert verdict.code in ("digest", "malformed")


@given(names, st.sampled_from(["body", "specification"]), st.integers(0, 63), st.data())
def test_no_digit_of_a_digest_can_be_changed(name, part, position, data):
    certificate = copy.deepcopy(CASES[name])
    digest = certificate["digests"][part]
    digit = data.draw(st.sampled_from("0123456789abcdefABCDEF"))
    certificate["digests"][part] = digest[:position] + digit + digest[position + 1 :]
    assert verdict_on(certificate).accepted == (digit == digest[position])


# What says nothing but what the mathematics needs: any change is a lie.
RIGID = {
    "equality": ("attention", "values", "pattern", "offsets", "heads", "kernel_size"),
    "lower_bound": ("determinant", "heads", "tokens_per_side", "columns"),
    "no_shared_map": ("heads", "inclusion", "kernel_size"),
    "rank": ("head_dimension", "out_channels", "in_channels", "rank"),
    "border": ("sums",),
    "commutant": ("dimension", "shifts"),
    "two_layers": ("leak", "blocks"),
    "exponentials": ("heads", "tokens"),
}
FREE = ("codes", "spare", "corners")  # other distinct integers do as well


def rigid_numbers(certificate):
    body = certificate["body"]
    for field in RIGID.get(certificate["kind"], ()):
        for path in numbers(body[field], (field,)):
            last_column = "forms" in path and path[-1] == len(body["kernel_size"]) + 1
            if not set(FREE) & set(path) and not last_column:
                yield path


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_such_number_one_by_one(name):
    paths = list(rigid_numbers(CASES[name]))
    assert paths or CASES[name]["kind"] not in RIGID
    for path in paths:
        for step in (1, -1):
            certificate = with_another_number(CASES[name], ("body", *path), step)
            verdict = verdict_on(build.sealed(certificate))
            assert not verdict.accepted, (path, step)
            assert verdict.code not in ("digest", "stale", "internal")


@given(names, st.data())
def test_no_part_can_be_replaced_by_nonsense(name, data):
    """Whatever stands in the place of whatever: a verdict, never an error."""
    certificate = copy.deepcopy(CASES[name])
    place = certificate
    while True:
        key = data.draw(
            st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place)))
        )
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(
        st.sampled_from([None, True, "", "x", -1, 10**30, [], {}, [[]], {"x": 1}, [0, "1"]])
    )
    verdict = verdict_on(build.sealed(certificate))
    assert verdict.code not in ("internal", "digest", "stale")
