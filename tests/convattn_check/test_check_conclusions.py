"""Where a verdict's sentence depends on numbers or on the case, it says what was shown."""

import pytest
from certificate_cases import CASES, changed, update, verdict_on

# The cases, and how the sentence ends.
ENDS = {
    "A19.graph-gcn": ", and it is not the normalised Laplacian I - A/2; sizes a 5, b 5",
    "B19.lemma1-one_by_one": "for all values of W, X; sizes d 3, f 2, j 10, k 10, l 1, m 1; "
    "E {'border': 'zero', 'grid': [2, 5], 'shifts': [[0, 0]], 'stride': 1}; "
    "G {'border': 'zero', 'grid': [2, 5], 'shifts': [[1, 1]], 'stride': 1}",
    "commutant_grid": "[0, 1], [0, -1] are the multiples of the identity alone",
    "commutant_torus": "[0, 1], [0, -1] are a space of dimension 6",
    "mixed_sign": "in the limit it takes exactly 2",
    "places": "by a ring, at finite scores, exactly",
    "places_limit": ", to any accuracy, with maps that grow like its inverse",
    "two_masks": "in the limit it takes exactly 2, with value maps that may grow without bound",
}
PARTS = {
    "bias_variation": "a bias M = 3 at one of 9 keys",
    "two_layers": "two layers of 3 and 4 heads (finite scores)",
    "two_layers_limit": "two layers of 2 and 3 heads (scores in the limit)",
    "two_of_three": "no 2 heads without content come nearer than 0.999999",
}


@pytest.mark.parametrize("name", ENDS)
def test_the_end_of_a_conclusion(name):
    assert verdict_on(CASES[name]).reason.endswith(ENDS[name])


@pytest.mark.parametrize("name", PARTS)
def test_a_part_of_a_conclusion(name):
    assert PARTS[name] in verdict_on(CASES[name]).reason


@pytest.mark.parametrize(("name", "finite"), [("relative_heads", True), ("hard_heads", False)])
def test_finite_scores_are_named_where_all_weights_are_positive(name, finite):
    assert ("finite scores" in verdict_on(CASES[name]).reason) == finite


def test_an_optimum_is_named_where_an_eigenvalue_is_left():
    """Without the third tap F has rank 2: two heads have no bound above 0."""
    kernel = [*CASES["two_of_three"]["body"]["kernel"][:-1], 0]
    change = update(kernel=kernel, thresholds=["3999999/1000000", "0"], error="4")
    reason = verdict_on(changed(CASES["two_of_three"], change)).reason
    assert reason.endswith("; no 1 heads without content come nearer than 3.999999")
