"""How far the logits of two runs of one network can lie apart: derived, and far from vacuous.

Bounds that push magnitudes through twenty layers grow by Σ|W|, a factor of some fifty in each, and
say nothing. The difference of two runs obeys something sharper.

*Two precisions.* u is the unit roundoff of the dtype of the runs, float32 or float64, the same for
both. In float64 the bound is some 2⁻²⁹ of what it is in float32, so that it tells whether two
networks are the same function; in float32 it covers what will be used, and can be wide.

*The identity.* Let x be the activations of a run of the folded network, and x' those of another,
both as they were computed, and d = x - x' exactly. Through every step d goes by a linear map that
is known once both runs are done:

- convolution and classifier: d ↦ W d + r - r', r and r' the local rounding errors of the two runs,
  each at its own input (`local_errors.py`); the bias drops out;
- ReLU: d ↦ s·d with the secant slope s = (relu(x) - relu(x'))/(x - x') in [0, 1], entry by entry,
  and no rounding, as relu is exact;
- sums and the mean: themselves, with their rounding.

For a logit c let g be cotangents, one at each activation, g = e_c at the logits. Whatever they are,
summing gᵀd along the steps telescopes, since d = 0 at the images:

    d_c = Σ_steps [ g_yᵀ(r - r') + (Mᵀ g_y - g_x)ᵀ d_x ],        M the linear map of the step.

With g_x = Mᵀ g_y, which is the transposed network, the second part vanishes. g is computed in
float32, whatever the runs are in, with M rounded to it, so it does not quite: with the γ_n of
float32 |Mᵀ g_y - g_x| ≤ γ_n |M|ᵀ|g_y|, and that part is at most |g_y|ᵀ γ_n|M||d_x|. So rounding in
g enters only in product with d, which was *seen* and is tiny, and

    |d_c| ≤ Σ_steps |g_y|ᵀ ( ρ(x) + ρ'(x') + γ_n |M||x - x'| ).

There is no other assumption on g. For ReLU the third term is 4·2⁻²⁴|relu(x) - relu(x')| where the
signs differ (quotient and product round), zero elsewhere; where a step is read twice, by branch and
shortcut, the two cotangents are added, which rounds: 2⁻²⁴|d|. A product of cotangents that
underflows is off by less than tiny(1 + max|W| + max|g|), n of them at each entry, times |d|.

*Arithmetic of the bound.* |W| * |x| is taken in float32 and inflated (`local_errors.py`), all
else in float64 on nonnegative numbers, and the result inflated by 1 + 2⁻²⁰.

*Sharper still, and first:* at every convolution both runs are given the same input, x', and must
agree within ρ(x') + ρ'(x'). An error in one layer shows there, whatever comes after.
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float

from convattn.networks.runs import Runner
from convattn.networks.steps import Convolution, Network, mixing_steps
from convattn.networks.walk import Walk

INFLATION = 1 + 2.0**-20


@dataclass(frozen=True)
class Deviation:
    """Two runs of one network side by side.

    Attributes:
        logits, other_logits: Of the two runs.
        bound: On the difference of each logit, float64.
        layers: For each convolution by name the largest fraction of its bound by which the two runs
            differ at the same input.
    """

    logits: Float[np.ndarray, "batch classes"]
    other_logits: Float[np.ndarray, "batch classes"]
    bound: Float[np.ndarray, "batch classes"]
    layers: dict[str, float]

    @property
    def difference(self) -> Float[np.ndarray, "batch classes"]:
        """|logits - other_logits|, in float64."""
        return np.abs(self.logits.astype(np.float64) - self.other_logits.astype(np.float64))

    @property
    def passed(self) -> bool:
        """Whether every logit and every layer is within its bound, all of them finite."""
        inside = (self.difference <= self.bound) & np.isfinite(self.bound)
        return bool(inside.all()) and all(ratio <= 1 for ratio in self.layers.values())

    @property
    def certain(self) -> Bool[np.ndarray, "batch"]:
        """Which images have a margin that no difference within the bound can bridge."""
        return margins(self.other_logits, self.bound) > 0


def margins(
    logits: Float[np.ndarray, "batch classes"], bound: Float[np.ndarray, "batch classes"]
) -> Float[np.ndarray, "batch"]:
    """The least of what the first class leads another by, less the bounds of both.

    >>> margins(np.array([[3.0, 1.0, 0.0]]), np.array([[0.5, 0.5, 0.1]])).tolist()
    [1.0]
    """
    wide = logits.astype(np.float64)
    first = wide.argmax(axis=1)[:, None]
    lead = np.take_along_axis(wide - bound, first, 1) - (wide + bound)
    np.put_along_axis(lead, first, np.inf, 1)
    return lead.min(axis=1)


def deviation(
    network: Network,
    run: Runner,
    other: Runner,
    images: Float[Array, "batch height width channels"],
) -> Deviation:
    """Run a folded network twice, and bound how far the logits can lie apart.

    Args:
        network: Folded, of `Convolution` steps, ending in logits; in float32 or float64.
        run, other: How its convolutions are run.
        images: Of the network's dtype. All classes are taken at once, so that a few fill the
            machine.

    Raises:
        ValueError: For another dtype, two of them, or another kind of step, and as the runs do.

    Source: S.network of this project's ledger.

    >>> from convattn.networks.conversion import to_attention
    >>> from convattn.networks.runs import AttentionRun, FoldedRun
    >>> from convattn.networks.steps import Linear, Mean, Relu
    >>> network = (
    ...     Convolution(jnp.ones((3, 3, 1, 2)) / 9, jnp.ones(2), 1, "stem"), Relu(), Mean(),
    ...     Linear(jnp.array([[1.0, -1.0], [0.5, 2.0]]), jnp.zeros(2)),
    ... )
    >>> layers = {step.name: step.layer for step in mixing_steps(to_attention(network))}
    >>> found = deviation(network, FoldedRun(), AttentionRun(layers), jnp.ones((1, 6, 6, 1)))
    >>> found.passed, bool((found.bound < 1e-3).all())
    (True, True)
    """
    images = jnp.asarray(images)
    require_one_dtype(network, images)
    walk = Walk(run, other)
    left, right, back = walk.chain(network, images, images)
    units = np.eye(left.shape[-1], dtype=np.float32)[:, None]
    back(np.broadcast_to(units, (left.shape[-1], *left.shape)))
    bound = np.broadcast_to(walk.bound, left.shape[::-1]).T * INFLATION
    return Deviation(np.asarray(left), np.asarray(right), bound, walk.ratios)


def require_one_dtype(network: Network, images: Array) -> None:
    """Refuse what the bound is not derived for.

    Raises:
        ValueError: As described above.
    """
    if images.dtype not in (jnp.float32, jnp.float64):
        raise ValueError(
            f"images.dtype={images.dtype}, but the bound is derived for float32 and float64"
        )
    for step in mixing_steps(network):
        if isinstance(step, Convolution) and step.kernel.dtype != images.dtype:
            raise ValueError(
                f"images.dtype={images.dtype}, but the kernel of {step.name or 'a layer'} is in "
                f"{step.kernel.dtype}; give both in one dtype"
            )
