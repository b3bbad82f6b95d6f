"""The benchmark of training: its forms compute what our model computes, its arithmetic is right.

In float64 and without dropout the forms differ from our model by rounding alone. Each number is the
result of sums and products of at most n = 10⁵ terms in all (tokens, widths, heads and layers of the
tiny model together), so that γ_n times the largest number bounds the difference with room to spare
while any wrong map differs by as much as the numbers themselves.
"""

import importlib.util
import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import training_bench
from benchmarks.training import rounds
from benchmarks.training.implementations import (
    StepMemory,
    make_step_of,
    names,
    random_batch,
)
from benchmarks.training.plain_encoder import FORMS, with_stored_outputs
from benchmarks.training.rows import Row, fastest_torch
from benchmarks.training.settings import QUICK
from benchmarks.training.targets import targets
from benchmarks.training.torch_model import (
    MIXINGS,
    as_torch,
    our_arrays,
    torch_model,
    torch_optimizer,
)
from comparison import assert_within, gamma
from flax import nnx

from convattn_lab.models.encoder import Encoder
from convattn_lab.models.settings import EncoderSettings
from convattn_lab.training.optimizer import decays
from convattn_lab.training.settings import TrainingSettings

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed"
)
pytestmark = pytest.mark.slow  # whole training steps of every form
MODEL = EncoderSettings(heads=(3, 2), width=6, inner=7, dropout=0.0)
BATCH, HEIGHT, WIDTH = 2, 6, 8
TERMS = 10**5


@pytest.fixture(scope="module")
def ours():
    """Our model in float64, with every weight, norms included, away from where it starts."""
    rngs = nnx.Rngs(0)
    model = Encoder(MODEL, classes=10, image_size=(HEIGHT, WIDTH), rngs=rngs, dtype="float64")
    random = np.random.default_rng(1)
    structure, state = nnx.split(model)
    state = jax.tree.map(lambda leaf: jnp.asarray(leaf + random.normal(size=leaf.shape) / 4), state)
    return nnx.merge(structure, state)


@pytest.fixture(scope="module")
def batch():
    pixels, labels = random_batch(BATCH, WIDTH)
    return pixels[:, :HEIGHT] / 255 - 0.5, labels


def logits_and_gradients(model, images, labels):
    structure, parameters = nnx.split(model)

    def loss(parameters):
        logits = nnx.merge(structure, parameters)(images, training=True)
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)
        return -picked.mean(), logits

    (_, logits), gradients = jax.jit(jax.value_and_grad(loss, has_aux=True))(parameters)
    return {"logits": np.asarray(logits), **our_arrays(gradients)}


@pytest.fixture(scope="module")
def expected(ours, batch):
    return logits_and_gradients(ours, jnp.asarray(batch[0]), jnp.asarray(batch[1]))


def assert_same_arrays(actual, expected):
    assert actual.keys() == expected.keys()
    for name, array in expected.items():
        bound = gamma(TERMS, "float64") * float(np.abs(array).max() + 1)
        assert_within(actual[name], array, bound)


@pytest.mark.parametrize("form", FORMS)
def test_the_forms_that_keep_head_outputs_compute_our_model(form, ours, batch, expected):
    storing = with_stored_outputs(ours, form)
    assert {type(layer) for layer in storing.layers} == {FORMS[form]}
    assert_same_arrays(logits_and_gradients(storing, *map(jnp.asarray, batch)), expected)


def torch_results(model, batch, mixing):
    import torch

    form = torch_model(model, mixing, double=True)
    logits = form.logits(torch.tensor(batch[0]), True)
    labels = torch.tensor(batch[1], dtype=torch.int64)
    torch.nn.functional.cross_entropy(logits, labels).backward()
    gradients = {name: parameter.grad.numpy() for name, parameter in form.parameters.items()}
    return {"logits": logits.detach().numpy(), **gradients}


@needs_torch
@pytest.mark.parametrize("mixing", MIXINGS)
def test_the_pytorch_forms_compute_our_model(mixing, ours, batch, expected):
    expected_torch = {name: as_torch(name, array) for name, array in expected.items()}
    assert_same_arrays(torch_results(ours, batch, mixing), expected_torch)


@needs_torch
@pytest.mark.parametrize("name", ["attention.value", "outer.kernel"])
def test_a_wrong_mapping_of_weights_is_seen(name, ours, batch, expected, monkeypatch):
    def wrong(named, array):
        right = as_torch(named, array)
        return right[::-1].copy() if named.endswith(name) else right

    monkeypatch.setattr("benchmarks.training.torch_model.as_torch", wrong)
    actual = torch_results(ours, batch, "einsum")
    with pytest.raises(AssertionError):
        assert_within(actual["logits"], expected["logits"], gamma(TERMS, "float64") * 100)


@needs_torch
def test_pytorch_decays_what_we_decay(ours) -> None:
    settings = TrainingSettings(weight_decay=0.25)
    parameters = torch_model(ours).parameters
    groups = torch_optimizer(parameters, settings).param_groups
    decayed = {
        id(parameter) for group in groups if group["weight_decay"] for parameter in group["params"]
    }
    decayed_names = {name for name, parameter in parameters.items() if id(parameter) in decayed}
    flags = our_arrays(decays(nnx.state(ours, nnx.Param)))
    assert decayed_names == {name for name, flag in flags.items() if flag}
    assert {group["weight_decay"] for group in groups} == {0.25, 0.0}
    assert {group["momentum"] for group in groups} == {settings.momentum}


def test_every_contestant_takes_a_step_and_says_its_memory() -> None:
    for name in names(QUICK):
        step = make_step_of(name, 2, QUICK)
        step.run()
        assert (step.memory is None) == name.startswith("torch")
    with pytest.raises(ValueError, match="does not compete"):
        make_step_of("torch magic", 2, QUICK)


def test_turns_are_timed_by_both_clocks_and_rotate() -> None:
    order: list[str] = []
    ticks = iter(range(1000))
    clocks = (lambda: float(next(ticks)), lambda: 10.0 * next(ticks))
    runs = {name: lambda name=name: order.append(name) for name in "abc"}
    times = rounds.take_turns(runs, 2, 0.0, clocks)
    assert order == [*"abc", *"abc", *"bca"]
    assert times == dict.fromkeys("abc", ([2.0, 2.0], [20.0, 20.0]))


def rows(ours, torch, plain_peak=400, resident=(50, 100)):
    memory = {"ours": StepMemory(60, 50, 190, 50), "plain": StepMemory(0, 0, plain_peak, 0)}
    timed = [
        Row("ours", 20, ours, [2 * seconds for seconds in ours]),
        Row("kept", 20, [seconds / 1.25 for seconds in ours], ours),
        Row("torch einsum", 20, torch, torch),
        Row("torch bmm", 20, [2 * seconds for seconds in torch], torch),
    ]
    weighed = [
        Row(name, 100, memory=memory[name], resident=size)
        for name, size in zip(("ours", "plain"), resident, strict=True)
    ]
    return timed, weighed


def verdicts(*args):
    return [target.verdict for target in targets(*rows(*args))]


def test_targets_follow_from_the_rows() -> None:
    timed, weighed = rows([1.0, 2.0, 1.0], [1.5, 2.8, 1.2], 500)
    assert weighed[0].memory is not None
    assert weighed[0].memory.peak == 250
    assert fastest_torch(timed) is timed[2]
    results = targets(timed, weighed)
    assert results[0].measured == "1.40 (quartiles 1.30 to 1.45) × torch einsum"
    assert results[1].measured == "0.70 (quartiles 0.65 to 0.72)"
    assert results[2].measured == "1.25 (quartiles 1.25 to 1.25)"
    assert results[4].measured.startswith("0.50")
    assert [target.verdict for target in results] == ["met", "", "", "", "met", "met"]


def test_missed_targets_are_missed() -> None:
    assert verdicts([1.0, 1.0], [1.2, 1.2])[0] == "missed"
    assert verdicts([1.0] * 3, [1.2, 1.2, 1.6])[0] == "missed, within the noise"
    assert verdicts([1.0, 1.0], [1.4, 1.4], 499)[4:] == ["missed", "met"]
    assert verdicts([1.0, 1.0], [1.4, 1.4], 500, (51, 100))[4:] == ["met", "missed"]
    assert verdicts([1.0, 1.0], [1.4, 1.4], 500, (None, 100))[4:] == ["met", "not measured"]
    assert [target.verdict for target in targets([], [])] == ["not measured"]


def test_the_command_writes_what_it_measured(tmp_path, monkeypatch, capsys) -> None:
    path = tmp_path / "new" / "training.json"
    monkeypatch.setattr(rounds, "names", lambda settings: ["ours", "plain"])
    argv = ["training_bench.py", "--quick", "--turns", "2", "--json", str(path)]
    monkeypatch.setattr(sys, "argv", argv)
    training_bench.main()
    written = json.loads(path.read_text())
    assert {(row["contestant"], row["batch"]) for row in written["rows"]} >= {
        ("ours", 3),
        ("plain", 3),
        ("ours", 4),
        ("kept", 4),
    }
    assert all(len(row["wall"]) == 2 for row in written["rows"] if row["batch"] == 3)
    assert "memory of a step" in capsys.readouterr().out
