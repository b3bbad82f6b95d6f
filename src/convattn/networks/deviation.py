"""How far the logits of two runs of one network can lie apart: derived, and far from vacuous.

Bounds that push magnitudes through twenty layers grow by Σ|W|, a factor of some fifty in each, and
say nothing. The difference of two runs obeys something sharper.

*The identity.* Let x be the activations of a run of the folded network, and x' those of another,
both as they were computed, and d = x - x' exactly. Through every step d goes by a linear map that
is known once both runs are done:

- convolution and classifier: d ↦ W d + r - r', r and r' the local rounding errors of the two runs,
  each at its own input (`runs.py`); the bias drops out;
- ReLU: d ↦ s·d with the secant slope s = (relu(x) - relu(x'))/(x - x') in [0, 1], entry by entry,
  and no rounding, as relu is exact;
- sums and the mean: themselves, with their rounding.

For a logit c let g be cotangents, one at each activation, g = e_c at the logits. Whatever they are,
summing gᵀd along the steps telescopes, since d = 0 at the images:

    d_c = Σ_steps [ g_yᵀ(r - r') + (Mᵀ g_y - g_x)ᵀ d_x ],        M the linear map of the step.

With g_x = Mᵀ g_y, which is the transposed network, the second part vanishes. g is computed in
float32, so it does not quite: |Mᵀ g_y - g_x| ≤ γ_n |M|ᵀ|g_y|, and that part is at most
|g_y|ᵀ γ_n|M||d_x|. So rounding in g enters only in product with d, which was *seen* and is tiny,
and

    |d_c| ≤ Σ_steps |g_y|ᵀ ( ρ(x) + ρ'(x') + γ_n |M||x - x'| ).

There is no other assumption on g. For ReLU the third term is 4u|relu(x) - relu(x')| where the signs
differ (quotient and product round), zero elsewhere; where a step is read twice, by branch and
shortcut, the two cotangents are added, which rounds: u|d|. A product of cotangents that underflows
is off by less than tiny(1 + max|W| + max|g|), n of them at each entry, times |d|.

*Arithmetic of the bound.* |W| * |x| is taken in float32 and inflated (`runs.py`), everything else
in float64 on nonnegative numbers, and the result inflated by 1 + 2⁻²⁰.

*Sharper still, and first:* at every convolution both runs are given the same input, x', and must
agree within ρ(x') + ρ'(x'). An error in one layer shows there, whatever comes after.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from convattn.networks.runs import (
    TINY,
    UNIT,
    Runner,
    of_products,
    products,
)
from convattn.networks.step_errors import (
    apart,
    convolution_error,
    linear_error,
    mean_error,
    pulled,
    rectified,
    sum_error,
    times_transpose,
    wide,
)
from convattn.networks.steps import (
    Convolution,
    Linear,
    Mean,
    Network,
    Relu,
    Residual,
    Scaling,
    Step,
    apply_step,
)

Passed = tuple[Array, Array, Callable[[Array], Array]]  # both runs, and the way back
INFLATION = 1 + 2.0**-20


@dataclass(frozen=True)
class Deviation:
    """Two runs of one network side by side.

    **Fields:**

    - `logits`, `other_logits`: of the two runs.
    - `bound`: on the difference of each logit, float64.
    - `layers`: for each convolution by name the largest share of its bound by which the two runs
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
        return bool(inside.all()) and all(share <= 1 for share in self.layers.values())

    @property
    def certain(self) -> int:
        """How many images have a margin that no difference within the bound can bridge."""
        return int((margins(self.other_logits, self.bound) > 0).sum())


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

    **Arguments:**

    - `network`: folded, of `Convolution` steps, ending in logits; in float32.
    - `run`, `other`: how its convolutions are run.
    - `images`: float32. All classes are taken at once, so that a few fill the machine.

    **Raises:** `ValueError` for another dtype or another kind of step, and as the runs do.

    **Source:** S.network of this project's ledger.

    >>> from convattn.networks.conversion import to_attention
    >>> from convattn.networks.runs import AttentionRun, FoldedRun
    >>> from convattn.networks.steps import mixing_steps
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
    if images.dtype != jnp.float32:
        raise ValueError(f"images.dtype={images.dtype}, but the bound is derived for float32")
    walk = _Walk(run, other)
    left, right, back = walk.chain(network, images, images)
    units = jnp.eye(left.shape[-1], dtype=left.dtype)[:, None]
    back(jnp.broadcast_to(units, (left.shape[-1], *left.shape)))
    bound = np.broadcast_to(walk.bound, left.shape[::-1]).T * INFLATION
    return Deviation(np.asarray(left), np.asarray(right), bound, walk.shares)


class _Walk:
    """Both runs forward, step by step; then cotangents back, each step charging its errors."""

    def __init__(self, run: Runner, other: Runner) -> None:
        self.run, self.other = run, other
        self.shares: dict[str, float] = {}
        self.bound = np.zeros((1, 1))  # [classes, batch] once there are cotangents

    def chain(self, steps: Network, x: Array, y: Array) -> Passed:
        """Both runs through these steps, and the way back."""
        ways = []
        for step in steps:
            x, y, back = self.step(step, x, y)
            ways.append(back)

        def back_all(cotangent: Array) -> Array:
            for back in reversed(ways):
                cotangent = back(cotangent)
            return cotangent

        return x, y, back_all

    def step(self, step: Step, x: Array, y: Array) -> Passed:
        """One step."""
        match step:
            case Scaling():
                return apply_step(step, x), apply_step(step, y), lambda cotangent: cotangent
            case Convolution():
                return self.convolution(step, x, y)
            case Relu():
                left, right, slope, local = rectified(x, y)
                return (
                    left,
                    right,
                    self.way(local, lambda cotangent: jnp.asarray(np.asarray(cotangent) * slope)),
                )
            case Residual():
                return self.residual(step, x, y)
            case Mean():
                local = mean_error(x, y)
                pixels, shape = x.shape[1] * x.shape[2], x.shape

                def spread_out(cotangent: Array) -> Array:
                    each = (cotangent / pixels)[:, :, None, None]
                    return jnp.broadcast_to(each, (len(cotangent), *shape))

                way = self.way(local, spread_out, float(apart(x, y).sum()), 2)
                return apply_step(step, x), apply_step(step, y), way
            case Linear(kernel):
                local = linear_error(step, x, y)
                terms, largest = max(kernel.shape) + 4, float(jnp.abs(kernel).max())
                gap = float(apart(x, y).sum())
                way = self.way(local, lambda g: times_transpose(g, kernel), gap, terms, largest)
                return apply_step(step, x), apply_step(step, y), way
        raise ValueError(
            f"the network has a step {type(step).__name__}, but the bound is derived for the "
            "folded network of convolutions"
        )

    def convolution(self, step: Convolution, x: Array, y: Array) -> Passed:
        """Both runs, each at its own input; and both at the same."""
        left, right = self.run.apply(step, x), self.other.apply(step, y)
        same = self.run.apply(step, y)
        errors = self.run.error(step, x), self.other.error(step, y), of_products(step)
        local, worst, gap = convolution_error(step, x, y, same, right, errors)
        self.shares[step.name] = worst
        shape, largest = x.shape[1:], float(np.abs(wide(step.kernel)).max())

        def transposed(cotangent: Array) -> Array:
            return pulled(step.kernel, cotangent, shape, step.stride)

        return left, right, self.way(local, transposed, gap, products(step), largest)

    def residual(self, step: Residual, x: Array, y: Array) -> Passed:
        """Branch and shortcut."""
        left, right, branch = self.chain(step.branch, x, y)
        left_too, right_too, shortcut = self.chain(step.shortcut, x, y)
        left, right = left + left_too, right + right_too
        gap = UNIT * apart(x, y)

        def both(cotangent: Array) -> Array:
            total = branch(cotangent) + shortcut(cotangent)
            self.charge(total, gap)
            return total

        return left, right, self.way(sum_error(left, right), both)

    def way(
        self,
        local: np.ndarray,
        transposed: Callable[[Array], Array],
        gap: float = 0.0,
        terms: int = 0,
        largest: float = 1.0,
    ) -> Callable[[Array], Array]:
        """Back through a step: charge its local errors, and what underflows in its transpose.

        **Arguments:**

        - `gap`: Σ|d| before the step; `terms`, `largest`: n and max|M|.
        """

        def back(cotangent: Array) -> Array:
            size = self.charge(cotangent, local)
            self.bound = self.bound + 2 * terms * TINY * (1 + largest + size) * float(gap)
            return transposed(cotangent)

        return back

    def charge(self, cotangent: Array, error: np.ndarray) -> float:
        """Σ |g|·error over all but classes and images, in float64; returns max|g|."""
        classes, batch = cotangent.shape[:2]
        left = np.abs(np.asarray(cotangent)).reshape(classes, batch, -1)
        right = error.reshape(batch, -1)
        each = [np.einsum("cn,n->c", left[:, i], right[i]) for i in range(batch)]
        self.bound = self.bound + np.stack(each, axis=1)
        return float(left.max(initial=0))
