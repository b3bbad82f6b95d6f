"""How sure one can be of a share that was counted."""

import math

NORMAL_95 = 1.959963984540054  # the 97.5 % quantile of the normal distribution


def wilson_interval(right: int, count: int) -> tuple[float, float]:
    """The 95 % interval of Wilson for the probability of which `right` of `count` were observed.

    The probabilities p with |right/count - p| ≤ z √(p(1 - p)/count), z the 97.5 % quantile of the
    normal distribution. The observations should be independent.

    Raises:
        ValueError: Unless 0 ≤ right ≤ count and count ≥ 1.

    Source: Wilson 1927.

    >>> [round(end, 3) for end in wilson_interval(250, 500)]
    [0.456, 0.544]
    """
    if not 0 <= right <= count or count < 1:
        raise ValueError(f"{right} right of {count}, but expected 0 ≤ right ≤ count and count ≥ 1")
    share, weight = right / count, NORMAL_95**2 / count
    middle = (share + weight / 2) / (1 + weight)
    spread = math.sqrt(share * (1 - share) * weight + weight**2 / 4) / (1 + weight)
    return max(0.0, middle - spread), min(1.0, middle + spread)
