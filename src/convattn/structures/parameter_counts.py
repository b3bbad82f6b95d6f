"""How many numbers the reduced forms of Θ have, and when that is fewer (A19, Section 1.3).

| form                 | numbers   | fewer than KPQ iff    |
|----------------------|-----------|-----------------------|
| grouped              | KPQ/ν     | ν > 1                 |
| depth-wise separable | KP + PQ   | (K - 1)(Q - 1) > 1    |
| controlled separable | H(K + PQ) | H < KPQ/(K + PQ)      |

KP + PQ < KPQ iff K + Q < KQ iff (K - 1)(Q - 1) > 1; and H(K + PQ) < KPQ by division. Since
KPQ/(K + PQ) < min(K, PQ), saving implies H < K, but not the other way round: every H < K saves iff
(K - 1)(K + PQ) < KPQ, that is PQ > K(K - 1).
"""

from convattn.operators.integers import as_integer


def parameter_count(
    size: int,
    in_channels: int,
    out_channels: int,
    *,
    groups: int | None = None,
    separable: bool = False,
    controls: int | None = None,
) -> int:
    """How many numbers a form of Θ has; none of the options means all KPQ.

    Args:
        size: K.
        in_channels: P.
        out_channels: Q.
        groups: ν, grouped.
        separable: depth-wise separable.
        controls: H, controlled separable.

    Raises:
        ValueError: For more than one form, ν that does not divide both P and Q, and sizes that are
            no integers or below one.

    Source: A19 Section 1.3.

    >>> [parameter_count(9, 3, 3, controls=h) for h in (4, 5)], parameter_count(9, 3, 3)
    ([72, 90], 81)
    """
    size = as_integer(size, "size", 1)
    in_channels = as_integer(in_channels, "in_channels", 1)
    out_channels = as_integer(out_channels, "out_channels", 1)
    groups = None if groups is None else as_integer(groups, "groups", 1)
    controls = None if controls is None else as_integer(controls, "controls", 1)
    if (groups is not None) + separable + (controls is not None) > 1:
        raise ValueError(
            f"groups={groups}, separable={separable}, controls={controls}, but Θ has one form"
        )
    if groups is not None:
        if in_channels % groups or out_channels % groups:
            raise ValueError(
                f"groups={groups}, but should divide both {in_channels} input and {out_channels} "
                "output channels"
            )
        return size * in_channels * out_channels // groups
    if separable:
        return size * in_channels + in_channels * out_channels
    if controls is not None:
        return controls * (size + in_channels * out_channels)
    return size * in_channels * out_channels


def saves(
    size: int,
    in_channels: int,
    out_channels: int,
    *,
    groups: int | None = None,
    separable: bool = False,
    controls: int | None = None,
) -> bool:
    """Whether a form has fewer numbers than KPQ.

    Raises:
        ValueError: As `parameter_count`.

    >>> saves(9, 3, 3, controls=4), saves(9, 3, 3, controls=5)
    (True, False)
    """
    full = parameter_count(size, in_channels, out_channels)
    return full > parameter_count(
        size,
        in_channels,
        out_channels,
        groups=groups,
        separable=separable,
        controls=controls,
    )
