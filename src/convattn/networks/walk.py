"""Two runs of one network forward, step by step; then cotangents back, each charging its errors.

The derivation is in `deviation.py`.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from convattn.networks.local_errors import SINGLE, TINY, of_products, products
from convattn.networks.runs import Runner
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
    Values,
    apply_step,
)

Way = Callable[[Values], Values]  # of cotangents, back through steps
Passed = tuple[Values, Values, Way]  # both runs, and the way back


def both_through(step: Step, x: Values, y: Values) -> tuple[Values, Values]:
    """A step that both runs take alike."""
    return apply_step(step, jnp.asarray(x)), apply_step(step, jnp.asarray(y))


class Walk:
    """Both runs forward, step by step; then cotangents back, each step charging its errors."""

    def __init__(self, run: Runner, other: Runner) -> None:
        self.run, self.other = run, other
        self.ratios: dict[str, float] = {}
        self.bound = np.zeros((1, 1))  # [classes, batch] once there are cotangents

    def chain(self, steps: Network, x: Values, y: Values) -> Passed:
        """Both runs through these steps, and the way back."""
        ways = []
        for step in steps:
            x, y, back = self.step(step, x, y)
            ways.append(back)

        def back_all(cotangent: Values) -> Values:
            for back in reversed(ways):
                cotangent = back(cotangent)
            return cotangent

        return x, y, back_all

    def step(self, step: Step, x: Values, y: Values) -> Passed:
        """One step."""
        match step:
            case Scaling():
                return *both_through(step, x, y), lambda cotangent: cotangent
            case Convolution():
                return self.convolution(step, x, y)
            case Relu():
                left, right, slope, local = rectified(x, y)
                return left, right, self.way(local, lambda g: np.asarray(g) * slope)
            case Residual():
                return self.residual(step, x, y)
            case Mean():
                local = mean_error(x, y)
                pixels, shape = x.shape[1] * x.shape[2], x.shape

                def spread_out(cotangent: Values) -> Values:
                    each = (np.asarray(cotangent) / np.float32(pixels))[:, :, None, None]
                    return np.broadcast_to(each, (len(cotangent), *shape))

                way = self.way(local, spread_out, float(apart(x, y).sum()), 2)
                return *both_through(step, x, y), way
            case Linear(kernel):
                local = linear_error(step, x, y)
                terms, largest = max(kernel.shape) + 4, float(np.abs(wide(kernel)).max())
                gap = float(apart(x, y).sum())
                way = self.way(local, lambda g: times_transpose(g, kernel), gap, terms, largest)
                return *both_through(step, x, y), way
        raise ValueError(
            f"the network has a step {type(step).__name__}, but the bound is derived for the "
            "folded network of convolutions"
        )

    def convolution(self, step: Convolution, x: Values, y: Values) -> Passed:
        """Both runs, each at its own input; and both at the same."""
        left, right = self.run.apply(step, x), self.other.apply(step, y)
        same = self.run.apply(step, y)
        errors = self.run.error(step, x), self.other.error(step, y), of_products(step, SINGLE)
        local, worst, gap = convolution_error(step, x, y, same, right, errors)
        self.ratios[step.name] = worst
        shape, largest = x.shape[1:], float(np.abs(wide(step.kernel)).max())

        def transposed(cotangent: Values) -> Values:
            return pulled(step.kernel, cotangent, shape, step.stride)

        return left, right, self.way(local, transposed, gap, products(step), largest)

    def residual(self, step: Residual, x: Values, y: Values) -> Passed:
        """Branch and shortcut."""
        left, right, branch = self.chain(step.branch, x, y)
        left_too, right_too, shortcut = self.chain(step.shortcut, x, y)
        left = np.asarray(left) + np.asarray(left_too)
        right = np.asarray(right) + np.asarray(right_too)
        gap = SINGLE * apart(x, y)

        def both(cotangent: Values) -> Values:
            total = np.asarray(branch(cotangent)) + np.asarray(shortcut(cotangent))
            self.charge(total, gap)
            return total

        return left, right, self.way(sum_error(left, right), both)

    def way(
        self,
        local: np.ndarray,
        transposed: Way,
        gap: float = 0.0,
        terms: int = 0,
        largest: float = 1.0,
    ) -> Way:
        """Back through a step: charge its local errors, and what underflows in its transpose.

        Args:
            gap: Σ|d| before the step.
            terms, largest: n and max|M|.
        """

        def back(cotangent: Values) -> Values:
            size = self.charge(cotangent, local)
            self.bound = self.bound + 2 * terms * TINY * (1 + largest + size) * float(gap)
            return transposed(cotangent)

        return back

    def charge(self, cotangent: Values, error: np.ndarray) -> float:
        """Σ |g|·error over all but classes and images, in float64; returns max|g|."""
        classes, batch = cotangent.shape[:2]
        left = np.abs(np.asarray(cotangent)).reshape(classes, batch, -1)
        right = error.reshape(batch, -1)
        each = [np.einsum("cn,n->c", left[:, i], right[i]) for i in range(batch)]
        self.bound = self.bound + np.stack(each, axis=1)
        return float(left.max(initial=0))
