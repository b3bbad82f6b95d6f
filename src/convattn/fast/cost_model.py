"""What a back end's work is expected to take: four rates, fitted to measured times.

The rates are those of a step of training, forward and backward, for which the work of the forward
pass stands: the backward pass takes about twice the products, numbers and calls of the forward one
in every back end. `experiments/fit_cost_model.py` fits them, nonnegative, to the relative errors on
the times that `experiments/bench.py` has measured.
"""

from typing import NamedTuple

from convattn.fast.backend import Work


class Rates(NamedTuple):
    """Seconds of a forward and backward pass for each unit of the work of the forward pass.

    Attributes:
        product: A multiplication in a matrix product.
        moved: A number that an elementwise pass reads or writes.
        exponential: An exponential of a softmax.
        call: An operation that is launched.
    """

    product: float
    moved: float
    exponential: float
    call: float


# Those of "gpu" are guesses, since none was at hand.
RATES = {"cpu": Rates(5.0e-11, 7.7e-10, 2.0e-9, 8.2e-6), "gpu": Rates(3e-14, 1e-12, 2e-12, 5e-6)}


def seconds(work: Work, platform: str) -> float:
    """The expected time of a forward and backward pass, Σ rate · count.

    Args:
        work: Of the forward pass.
        platform: As `jax.default_backend()` names it; one without rates is taken for a GPU.

    >>> seconds(Work(1e9, 0.0, 0.0, 0.0), "cpu") > seconds(Work(1e9, 0.0, 0.0, 0.0), "gpu")
    True
    """
    rates = RATES.get(platform, RATES["gpu"])
    return sum(rate * count for rate, count in zip(rates, work, strict=True))
