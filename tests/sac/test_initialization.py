from itertools import combinations

import jax

from convattn.sac.initialization import initial_self_attentive


@jax.jit
def initial(key):
    return initial_self_attentive(
        key, 2, 4, 4, heads=2, key_features=4, distances=(3,), ordinary=True
    )


def test_no_two_parts_are_drawn_alike() -> None:
    """Of one shape and variance each: what shares a key is equal."""
    parameters = initial(jax.random.key(0))
    for parts in (
        (parameters.value, parameters.query, parameters.key),
        (parameters.output, parameters.ordinary),
    ):
        for one, other in combinations(parts, 2):
            assert one.shape == other.shape
            assert (one != other).all()
