"""How many heads a causal convolution of a sequence takes, under a causal mask (S.causal).

A query sees n keys. With the score log(1 + n(1/ε - 1)) at its tap a head has the row that S.finite
has on n tokens, so that T + 1 heads are exact where all taps are seen; so are S.kernel's. Biases
that are constant or linear in the distance need a number of heads that grows with the number of
tokens; of others that do not know n, 5T heads are enough.
"""

from convattn.bounds.head_counts import HeadCount

CAUSAL_REGIME = {
    "causal": "judged at the queries that see all taps, with scores that know how many keys a "
    "query sees. With biases that do not, finite and on N tokens, S.causal makes N - D + 1 heads "
    "necessary if they are constant from the distance D >= T on, N - T + 1 if they are linear, "
    "T = (K - 1) * dilation + 1"
}


def require_causal(kernel_size: tuple[int, ...], patch_size: tuple[int, ...]) -> None:
    """Refuse a causal mask on two axes, or on patches."""
    if len(kernel_size) != 1 or max(patch_size) > 1:
        raise ValueError(
            f"kernel_size={kernel_size} and patch_size={patch_size} with causal=True, but expected "
            f"a sequence of tokens; write kernel_size=({kernel_size[0]},) and patch_size=1, or "
            "leave out causal"
        )


def causal_counts(pair: tuple[HeadCount, HeadCount]) -> tuple[HeadCount, HeadCount]:
    """The counts under a causal mask, from those without: what suffices knows what a query sees.

    >>> causal_counts((HeadCount(5), HeadCount(5, "S.finite")))[1].claim
    'S.causal'
    """
    necessary, enough = pair
    claim = "S.kernel" if enough.claim == "S.kernel" else "S.causal"
    reason = f"{enough.reason}; scores know how many keys a query sees"
    return necessary, HeadCount(enough, claim, enough.basis, reason)
