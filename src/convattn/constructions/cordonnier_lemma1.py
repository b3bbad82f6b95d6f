"""C20 Lemma 1: hard attention through a bijection onto the shifts gives any convolution.

**Claim.** Let N_h heads attend with weight one to the key at f'(h) = -f(h) from the query, where
f' is a bijection onto Δ_K (the paper writes f(h) = q - k). If D_h ≥ D_out, some W_val and W_out
make MHSA = Conv for every kernel.

**Proof.** The output at q is Σ_h X_(q + f'(h)) W^(h) + b with W^(h) = W_val^(h) W_out^(h) (C20
eqs. 11 to 13). Put W^(h) = W_(f'(h)), the kernel's own matrix at that shift; as f' is a
bijection the sum runs once over Δ_K and is Conv(X)_q. Any D_in × D_out matrix is a product
through D_h dimensions if D_h ≥ min(D_in, D_out): take W_val = W and W_out = I, or the other way
round. ∎

The paper fixes W_out and lets only W_val vary; with a W_out that is not onto this fails, so W_out
must be free too. At a border query of a bare image the hypothesis cannot hold: the row would be
zero, while softmax rows sum to one. With the ring of `cordonnier_remarks` it holds everywhere.
"""

from collections.abc import Sequence

import numpy as np
from jax import Array
from jaxtyping import Num

from convattn.operators.shifts import Shift


def value_maps_for_bijection(
    token_maps: Num[Array, "offsets patch_in patch_out"],
    offsets: Sequence[Shift],
    heads_look_at: Sequence[Shift],
) -> Num[Array, "heads patch_in patch_out"]:
    """W^(h) = W_(f'(h)): the kernel's matrices in the order in which the heads look.

    Args:
        token_maps: The convolution's matrices, one for each of `offsets`.
        heads_look_at: f'(h) = k - q of each head.

    Raises:
        ValueError: Where `heads_look_at` is not a bijection onto `offsets`.

    Source: C20 Lemma 1, eqs. 10 to 13.

    >>> import jax.numpy as jnp
    >>> maps = jnp.array([[[1]], [[2]], [[3]]])
    >>> value_maps_for_bijection(maps, [(-1,), (0,), (1,)], [(1,), (-1,), (0,)])[:, 0, 0].tolist()
    [3, 1, 2]
    """
    if sorted(heads_look_at) != sorted(offsets):
        raise ValueError(
            f"the heads look at {sorted(heads_look_at)}, but should look at each of "
            f"{sorted(offsets)} exactly once (C20 Lemma 1 asks for a bijection)"
        )
    index = {tuple(offset): position for position, offset in enumerate(offsets)}
    return token_maps[np.array([index[tuple(shift)] for shift in heads_look_at])]
