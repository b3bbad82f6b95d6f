"""The optimiser that the settings ask for, and which parameters decay."""

from typing import Any

import jax
import optax
from jax.tree_util import keystr

from convattn_lab.training.settings import TrainingSettings

UNDECAYED = ("bias", "scale", "centers", "spreads", "class_token", "positions")


def learning_rate_schedule(settings: TrainingSettings, steps: int) -> optax.Schedule:
    """The learning rate at each step: η·min(1, (t + 1)/w), then η·½(1 + cos π(t - w)/(T - w)).

    T is the number of all steps and w the rounded number of them that warm up.

    Args:
        steps: T.

    >>> schedule = learning_rate_schedule(TrainingSettings(learning_rate=1.0, warmup=0.5), 8)
    >>> [round(float(schedule(t)), 3) for t in (0, 3, 4, 6, 8)]
    [0.25, 1.0, 1.0, 0.5, 0.0]
    """
    peak, warm = settings.learning_rate, round(settings.warmup * steps)
    after = (
        optax.constant_schedule(peak)
        if settings.schedule == "constant" or steps == warm
        else optax.cosine_decay_schedule(peak, steps - warm)
    )
    if not warm:
        return after
    rising = optax.linear_schedule(peak / warm, peak, max(1, warm - 1))
    return optax.join_schedules([rising, after], [warm])


def decays(parameters: Any) -> Any:
    """For each parameter whether its weight decays: all but centres, spreads, norms, biases,
    class tokens and what is added to tokens for their positions.

    >>> decays({"dense": {"kernel": 1.0, "bias": 1.0}, "centers": 1.0})
    {'centers': False, 'dense': {'bias': False, 'kernel': True}}
    """

    def one(path: tuple[Any, ...], _: Any) -> bool:
        names = keystr(path, simple=True, separator=".").split(".")
        return not any(name.endswith(UNDECAYED) for name in names)

    return jax.tree_util.tree_map_with_path(one, parameters)


def make_optimizer(settings: TrainingSettings, steps: int) -> optax.GradientTransformation:
    """SGD with momentum, its weight decay added to the gradient; or AdamW.

    Args:
        steps: Of the whole run, for the schedule.

    Source: C20, Table 2 (SGD); L21, appendix B (AdamW).
    """
    schedule = learning_rate_schedule(settings, steps)
    if settings.optimizer == "adamw":
        return optax.adamw(
            schedule,
            settings.beta1,
            settings.beta2,
            settings.epsilon,
            weight_decay=settings.weight_decay,
            mask=decays,
        )
    return optax.chain(
        optax.add_decayed_weights(settings.weight_decay, mask=decays),
        optax.sgd(schedule, momentum=settings.momentum or None),
    )
