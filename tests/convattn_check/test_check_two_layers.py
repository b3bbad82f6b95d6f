from itertools import product

import certificate_builder as build
import pytest
from certificate_cases import verdict_on


@pytest.mark.parametrize("size", [*product((1, 2, 3), (2, 3))], ids=str)
@pytest.mark.parametrize("image", [(1, 1), (1, 3), (3, 2)], ids=str)
def test_two_layers_of_all_parities(size, image):
    """Images as small as the reach are refused for that alone, after the identity."""
    for leak, patch in product(("0", "1/2", "3/7"), ((1, 1), (2, 3))):
        verdict = verdict_on(build.two_layers(size, patch, image, leak))
        reach = [-(-(k // 2) // p) for k, p in zip(size, patch, strict=True)]
        room = all(n > m for n, m in zip(image, reach, strict=True))
        assert (verdict.accepted, verdict.code) == (room, "" if room else "tokens")


@pytest.mark.parametrize("size", [(1, 2), (2, 2)], ids=str)
def test_the_margin_may_be_as_narrow_as_the_reach(size):
    """Before the image the reach ahead, after it the reach back, on axis 1."""
    wide, narrow = (build.two_layers(size, (1, 1), (2, 2), "1/2", thin) for thin in (False, True))
    assert narrow["body"]["margin"] != wide["body"]["margin"]
    assert verdict_on(narrow).accepted
