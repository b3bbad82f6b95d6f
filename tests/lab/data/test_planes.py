import numpy as np
import pytest

from convattn.ledger.images.planes import predict, restore


def test_restore_inverts_predict_on_every_byte_value() -> None:
    images = np.random.default_rng(0).integers(0, 256, (5, 14, 22, 3), np.uint8)
    assert set(np.unique(images)) == set(range(256))
    assert np.array_equal(restore(predict(images)), images)


def test_predict_inverts_restore() -> None:
    residuals = np.random.default_rng(1).integers(0, 256, (3, 5, 7, 11), np.uint8)
    assert np.array_equal(predict(restore(residuals)), residuals)


def test_residual_is_the_planar_difference_written_out() -> None:
    images = np.random.default_rng(2).integers(0, 256, (1, 4, 6, 3), np.uint8)
    residuals = predict(images)
    red_less_green = images[0, :, :, 0].astype(int) - images[0, :, :, 1]
    row, column = 2, 3
    planar = (
        red_less_green[row, column]
        - red_less_green[row, column - 1]
        - red_less_green[row - 1, column]
        + red_less_green[row - 1, column - 1]
    )
    assert residuals[0, 0, row, column] == planar % 256


def test_inputs_are_left_alone() -> None:
    images = np.full((1, 2, 3, 3), 9, np.uint8)
    residuals = predict(images)
    kept = residuals.copy()
    restore(residuals)
    assert np.array_equal(images, np.full((1, 2, 3, 3), 9, np.uint8))
    assert np.array_equal(residuals, kept)


@pytest.mark.parametrize(
    ("function", "array"),
    [
        (predict, np.zeros((1, 2, 2, 3), np.int64)),
        (predict, np.zeros((1, 2, 2, 4), np.uint8)),
        (predict, np.zeros((2, 2, 3), np.uint8)),
        (restore, np.zeros((3, 1, 2, 2), np.float32)),
        (restore, np.zeros((4, 1, 2, 2), np.uint8)),
    ],
)
def test_other_arrays_are_refused(function, array) -> None:
    with pytest.raises(ValueError, match="was expected"):
        function(array)
