"""C20's models before they are trained: how many parameters they have, and how heads begin."""

import math
from statistics import NormalDist
from typing import Any

import numpy as np

from convattn_lab.models.settings import EncoderSettings
from convattn_ledger.evidence.model_size import rounds_to
from convattn_ledger.run import EvidenceFailed, Run

HEADS = 5_000
CHANCE = 1e-9


def require_size(settings: EncoderSettings, printed: str | int) -> str:
    """The model has as many parameters as printed, and 10 logits for an image of 32 × 32.

    Args:
        printed: Such as "12.1M", or the exact number.

    Raises:
        EvidenceFailed: As described above.
    """
    import jax
    import jax.numpy as jnp
    from flax import nnx

    from convattn_lab.models.sizes import abstract_model, parameter_count

    model = abstract_model(settings)
    count = parameter_count(model)
    if not (rounds_to(count, printed) if isinstance(printed, str) else count == printed):
        raise EvidenceFailed(f"the model has {count:,} parameters, printed {printed}")
    image = jax.ShapeDtypeStruct((1, 32, 32, 3), jnp.float32)
    shape = nnx.eval_shape(lambda model, image: model(image), model, image).shape
    if shape != (1, 10):
        raise EvidenceFailed(f"the logits of an image have the shape {shape}, not (1, 10)")
    heads = settings.heads
    return f"{len(heads)} layers of {list(heads)} heads, {count:,} parameters ({printed})"


def require_first_heads(settings: EncoderSettings, run: Run) -> str:
    """Centres begin as N(0, 2I), and Σ^(-1/2) as I + N(0, 0.01 I), the variances printed.

    Of n draws, the fraction below x is nowhere further than ε from its probability, but with
    probability 2·exp(-2nε²) (Dvoretzky, Kiefer, Wolfowitz; the constant is Massart's). ε is chosen
    so that this is 10⁻⁹.

    Raises:
        EvidenceFailed: As described above.
    """
    from flax import nnx

    from convattn_lab.models.positional_attention import PositionalAttention

    seed = int(run.rng("heads").integers(2**31))
    narrow = EncoderSettings(
        settings.encoding,
        heads=(HEADS,),
        width=1,
        center_variance=settings.center_variance,
        spread_variance=settings.spread_variance,
    )
    attention = PositionalAttention(narrow, HEADS, (2, 2), rngs=nnx.Rngs(seed))
    spreads = np.asarray(attention.spreads[...], np.float64)
    offsets = spreads - (np.eye(2) if spreads.ndim == 3 else 1.0)
    checks = []
    for name, numbers, variance in (
        ("centres", np.asarray(attention.centers[...], np.float64), 2.0),
        ("Σ^(-1/2) - I", offsets, 0.01),
    ):
        gap, allowed = gap_to_normal(numbers, variance)
        if not gap <= allowed:
            raise EvidenceFailed(
                f"{name}: {numbers.size} draws are {gap:.4f} from N(0, {variance}), more than "
                f"{allowed:.4f}"
            )
        checks.append(f"{name} {gap:.4f} ≤ {allowed:.4f} from N(0, {variance})")
    return f"{'; '.join(checks)}, for {HEADS} heads"


def gap_to_normal(numbers: Any, variance: float) -> tuple[float, float]:
    """The greatest distance of the fractions of draws from N(0, variance), and what is allowed.

    >>> gap, allowed = gap_to_normal(np.zeros(10_000), 1.0)
    >>> gap, round(allowed, 4)
    (0.5, 0.0327)
    """
    ordered = np.sort(np.ravel(numbers))
    count, law = len(ordered), NormalDist(0.0, math.sqrt(variance))
    expected = np.array([law.cdf(number) for number in ordered])
    above = np.arange(1, count + 1) / count - expected
    below = expected - np.arange(count) / count
    return float(max(above.max(), below.max())), math.sqrt(math.log(2 / CHANCE) / (2 * count))
