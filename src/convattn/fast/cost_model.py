"""What a back end's work is expected to take: four rates, fitted to measured times."""

from convattn.fast.backend import Work

# platform: seconds for a product, a number moved, an exponential and a call.
RATES = {"cpu": (6e-12, 2e-10, 1e-9, 2e-6), "gpu": (3e-14, 1e-12, 2e-12, 5e-6)}


def seconds(work: Work, platform: str) -> float:
    """The expected time of one forward pass, Σ rate · count.

    **Arguments:**

    - `platform`: as `jax.default_backend()` names it; one without rates is taken for a GPU.

    >>> seconds(Work(1e9, 0.0, 0.0, 0.0), "cpu") > seconds(Work(1e9, 0.0, 0.0, 0.0), "gpu")
    True
    """
    rates = RATES.get(platform, RATES["gpu"])
    return sum(rate * count for rate, count in zip(rates, work, strict=True))
