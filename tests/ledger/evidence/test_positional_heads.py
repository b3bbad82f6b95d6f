import jax.numpy as jnp
import numpy as np
import pytest

from convattn.encodings import QuadraticEncoding
from convattn.encodings.quadratic import printed_features, printed_target
from convattn_ledger import EvidenceFailed
from convattn_ledger.evidence.positional_heads import (
    attended,
    bare_grid,
    head_weights,
    heads_within,
    images_as_tokens,
    products_within,
    scores_by_shift,
)

IMAGES = np.random.default_rng(0).integers(0, 256, (2, 3, 4, 2))
HEADS = QuadraticEncoding(jnp.array([0.5, 2.0]), jnp.array([[0.0, 1.0], [1.0, -1.0]]))


def exact_scores(alphas=(0.5, 2.0)) -> list[np.ndarray]:
    return [
        scores_by_shift(bare_grid(IMAGES), lambda s, a=alpha, c=center: -a * ((s - c) ** 2).sum(-1))
        for alpha, center in zip(alphas, ((0, 1), (1, -1)), strict=True)
    ]


def test_tokens_are_pixels_and_columns_the_channels_of_all_images() -> None:
    tokens = images_as_tokens(IMAGES)
    assert tokens.shape == (12, 4)
    assert tokens[5].tolist() == [*IMAGES[0, 1, 1], *IMAGES[1, 1, 1]]


def test_attended_is_the_weights_times_the_tokens() -> None:
    weights = np.asarray(head_weights(HEADS, bare_grid(IMAGES)), np.float64)
    result = images_as_tokens(np.asarray(attended(HEADS, 1, jnp.asarray(IMAGES, "float64"))))
    # a float64 sum of 12 products of weights below 1 and tokens below 256, and its reference's
    assert np.abs(result - weights[1] @ images_as_tokens(IMAGES)).max() <= 256 * 32 * 2.0**-53


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
def test_right_scores_pass_and_wrong_ones_fail(dtype) -> None:
    bounds = heads_within(dtype, HEADS, exact_scores(), IMAGES)
    assert [each.reference.shape for each in bounds] == [(12, 12)] * 2
    with pytest.raises(EvidenceFailed, match="weights of head 1"):
        heads_within(dtype, HEADS, exact_scores((0.5, 2.25)), IMAGES)


def test_a_result_of_another_dtype_fails(monkeypatch) -> None:
    monkeypatch.setattr(
        "convattn_ledger.evidence.positional_heads._attend",
        lambda layer, images, border: images.astype("float32"),
    )
    with pytest.raises(EvidenceFailed, match="float16 gave a result of float32"):
        attended(HEADS, 0, jnp.asarray(IMAGES, "float16"))


def test_printed_products_are_held_against_the_exact_weights() -> None:
    grid = bare_grid(IMAGES)
    shifts = (grid.key_positions[None] - grid.query_positions[:, None, :]).reshape(-1, 2)
    features = printed_features(shifts).reshape(12, 12, 3)
    targets = printed_target(HEADS.alpha, HEADS.centers)
    allowed = heads_within("float32", HEADS, exact_scores(), IMAGES)
    products_within("float32", features, targets, allowed)
    with pytest.raises(EvidenceFailed, match="head 0"):
        products_within("float32", features, targets * 1.01, allowed)
