"""The optimisers are those of their formulas, and decay what they should."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from comparison import assert_within, gamma
from flax import nnx
from lab.models.tiny import ENCODINGS, tiny

from convattn_lab.models.build import build_model
from convattn_lab.models.settings import ResNetSettings
from convattn_lab.training.optimizer import decays, learning_rate_schedule, make_optimizer
from convattn_lab.training.settings import TrainingSettings
from convattn_lab.training.state import named_leaves

STEPS = 6


def rates(peak, warm, steps, first=1):
    """The printed formula, in float64."""
    return [
        peak * (step + first) / warm
        if step < warm
        else peak * (1 + math.cos(math.pi * (step - warm) / (steps - warm))) / 2
        for step in range(steps)
    ]


@pytest.mark.parametrize(
    ("warmup", "steps"), [(0.0, 7), (0.1, 10), (0.3, 10), (0.3, 9), (0.5, 41), (1.0, 4)]
)
def test_the_schedule_is_its_formula(warmup, steps):
    """Some ten operations on numbers up to twice the peak, in float32 at least."""
    settings = TrainingSettings(learning_rate=0.3, warmup=warmup)
    schedule = learning_rate_schedule(settings, steps)
    warm, bound = round(warmup * steps), 2 * 0.3 * gamma(16, jnp.float32)
    actual = [float(schedule(step)) for step in range(steps)]
    assert_within(actual, rates(0.3, warm, steps), bound)
    if warm:  # planted: a rise that starts at zero
        with pytest.raises(AssertionError, match="too far"):
            assert_within(actual, rates(0.3, warm, steps, first=0), bound)


def test_a_run_can_keep_its_rate():
    constant = TrainingSettings(learning_rate=0.5, warmup=0.0, schedule="constant")
    assert [float(learning_rate_schedule(constant, 4)(t)) for t in range(4)] == [0.5] * 4


def parameters_and_gradients(dtype, low):
    """Parameters, and a gradient for each step."""
    rng = np.random.default_rng(0)
    first, *others = [
        {"kernel": rng.uniform(low, 1, (3, 2)).astype(dtype), "bias": np.asarray([low, 1], dtype)}
        for _ in range(STEPS + 1)
    ]
    return first, others


def sgd(settings, parameter, gradients, decay):
    """p ← p - η_t·m, m ← μm + (g + λp), each operation rounded to float32."""
    schedule = learning_rate_schedule(settings, STEPS)
    momentum, decay = np.float32(settings.momentum), np.float32(decay)
    trace = np.zeros_like(parameter)
    for step, gradient in enumerate(gradients):
        trace = (gradient + decay * parameter) + momentum * trace
        parameter = parameter + np.float32(-schedule(step)) * trace
    return parameter


def adamw(settings, parameter, gradients, decay):
    """p ← p - η_t(m̂/(√v̂ + ε) + λp), in float64."""
    schedule = learning_rate_schedule(settings, STEPS)
    mean = square = np.zeros_like(parameter)
    for step, gradient in enumerate(gradients):
        mean = settings.beta1 * mean + (1 - settings.beta1) * gradient
        square = settings.beta2 * square + (1 - settings.beta2) * gradient**2
        first = mean / (1 - settings.beta1 ** (step + 1))
        second = square / (1 - settings.beta2 ** (step + 1))
        change = first / (np.sqrt(second) + settings.epsilon) + decay * parameter
        parameter = parameter - float(schedule(step)) * change
    return parameter


SHARED = {"weight_decay": 0.05, "warmup": 0.3}
ADAMW = {"optimizer": "adamw", "beta1": 0.5, "beta2": 0.75, "epsilon": 1e-3}


@pytest.mark.parametrize("changes", [{"momentum": 0.0}, {"momentum": 0.9}, ADAMW])
@pytest.mark.quick(1)
def test_the_optimizer_is_the_loop(changes):
    """SGD to the last bit.

    For AdamW all gradients are positive, so that nothing cancels but 1 - β^t, which loses a factor
    4. A step has some 20 roundings of numbers up to 4, and its error moves the next ones no
    further. Optax takes β^t in float32 whatever the parameters are.
    """
    settings = TrainingSettings(**SHARED, **changes)
    loop, dtype, low, bound = sgd, np.float32, -1.0, 0.0
    if changes is ADAMW:
        loop, dtype, low, bound = adamw, np.float64, 0.1, 4 * gamma(4 * 20 * STEPS, jnp.float32)
    first, gradients = parameters_and_gradients(dtype, low)
    optimizer, parameters = make_optimizer(settings, STEPS), jax.tree.map(jnp.asarray, first)
    state = optimizer.init(parameters)
    for gradient in gradients:  # operation by operation
        updates, state = optimizer.update(gradient, state, parameters)
        parameters = optax.apply_updates(parameters, updates)
    for name, decay in (("kernel", 0.05), ("bias", 0.0)):
        series = [gradient[name] for gradient in gradients]
        assert_within(parameters[name], loop(settings, first[name], series, decay), bound, name)
        other = loop(settings, first[name], series, 0.05 - decay)  # planted: the other decay
        with pytest.raises(AssertionError, match="too far"):
            assert_within(parameters[name], other, bound, name)


MULTIPLY = ("kernel", "value", "query", "key", "head_vectors", "tables")


@pytest.mark.parametrize("encoding", [*ENCODINGS, "resnet"])
def test_only_what_multiplies_features_decays(encoding):
    """Centres, spreads, norms and biases do not, whatever they are called in the model."""

    def model():
        if encoding == "resnet":
            options = {"classes": 5, "image_size": (8, 8), "rngs": nnx.Rngs(0)}
            return build_model(ResNetSettings((4, 6), (1, 1)), **options)
        return tiny(encoding, (3,))

    parameters = nnx.state(nnx.eval_shape(model), nnx.Param)
    marks = {tuple(name.split(".")[:-1]): mark for name, mark in named_leaves(decays(parameters))}
    assert marks == {
        path: path[-1].rstrip("01") in MULTIPLY or path[-2:-1] == ("tables",) for path in marks
    }
    assert set(marks.values()) == {True, False}
