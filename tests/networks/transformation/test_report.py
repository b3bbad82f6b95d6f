"""What a report says of outputs, within their bounds and beyond them."""

import math

import pytest

from convattn.networks.transformation.report import LayerReport, Report

STEM = LayerReport("stem", 10, 1, 1e-7, 1e-5, 1.0)


def test_where_nothing_became_attention_nothing_passed():
    assert Report((), difference=0.0, largest=2.0, same_class=True).passed is None


@pytest.mark.parametrize(
    ("entries", "passed", "verdict"),
    [
        (((0.05, 0.1), (0.01, 0.2)), True, "within their bounds"),
        (((0.5, 0.1), (0.01, 0.2)), False, "1 BEYOND their bounds"),
        (((math.nan, 0.1), (0.5, 0.2)), False, "2 BEYOND their bounds"),
    ],
)
def test_outputs_beyond_their_bounds_are_counted(entries, passed, verdict):
    report = Report(
        (STEM,), difference=entries[0][0], largest=2.0, same_class=True, entries=entries
    )
    assert report.passed is passed
    assert f"those that differ most: {verdict} (derived, at most 2.00e-01)" in str(report)
