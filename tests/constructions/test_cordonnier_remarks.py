import pytest
from hypothesis import given
from hypothesis import strategies as st

from convattn.constructions.cordonnier_remarks import strided_output_pixels, zero_ring


@given(st.lists(st.lists(st.integers(-5, 5), min_size=1), min_size=1, max_size=2))
def test_the_ring_is_the_least_that_holds_every_offset(axes):
    for (before, after), offsets in zip(zero_ring(axes), axes, strict=True):
        fits = [
            (b, a)
            for b in range(7)
            for a in range(7)
            if all(-b <= offset <= a for offset in offsets)
        ]
        assert (before, after) == min(fits)
        assert (before, after) == (min(b for b, _ in fits), min(a for _, a in fits))


@given(st.integers(1, 12), st.integers(1, 12))
def test_a_stride_keeps_the_same_pixels_of_every_patch_or_there_is_no_answer(patch_size, stride):
    """The pixels of enough successive patches, as a subsampling after the layer keeps them."""
    kept = [
        [x - patch * patch_size for x in range(patch * patch_size, (patch + 1) * patch_size)
         if x % stride == 0]
        for patch in range(stride)
    ]  # fmt: skip
    same = all(pixels == kept[0] for pixels in kept)
    found = strided_output_pixels(patch_size, stride)
    assert (found is not None) == same
    if found is not None:
        assert list(found) == kept[0]


@pytest.mark.parametrize(("patch_size", "stride"), [(2, 3), (4, 3), (6, 4), (1, 2)])
def test_strides_that_do_not_divide_the_patch_are_known_not_to_work(patch_size, stride):
    assert strided_output_pixels(patch_size, stride) is None
