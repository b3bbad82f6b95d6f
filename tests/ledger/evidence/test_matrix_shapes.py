from convattn_ledger.evidence.matrix_shapes import is_score, product_shape, transposed


def test_products_agree_with_numpy() -> None:
    import numpy as np

    shapes = [(1, 4), (4, 3), (3, 4), (4, 1)]
    product = np.linalg.multi_dot([np.ones(shape) for shape in shapes])
    assert product_shape(*shapes) == product.shape == (1, 1)
    assert product_shape((2, 3)) == (2, 3)
    assert product_shape((1, 4), (3, 4)) is None


def test_a_score_is_one_number_in_every_term() -> None:
    assert is_score([(1, 4), transposed((1, 4))])
    assert not is_score([(1, 4), transposed((1, 4))], [(1, 4), (4, 4)])
    assert not is_score([(1, 4), (1, 4)])
