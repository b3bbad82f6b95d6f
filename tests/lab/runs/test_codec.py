"""Settings survive JSON, and what is no settings is refused."""

import json

import hypothesis.strategies as st
import pytest
from hypothesis import given

from convattn.lab.models.settings import ENCODINGS, EncoderSettings, ResNetSettings
from convattn.lab.runs.codec import settings_from_json, settings_to_json
from convattn.lab.runs.settings import ImageSettings, RunSettings
from convattn.lab.training.settings import TrainingSettings

shares = st.floats(0, 0.99)
counts = st.integers(1, 40)
encoders = st.builds(
    EncoderSettings,
    encoding=st.sampled_from(ENCODINGS),
    heads=st.lists(st.integers(0, 20), min_size=1, max_size=7).map(tuple),
    width=counts.map(lambda half: 2 * half),
    inner=counts,
    downsampling=st.integers(1, 4),
    dropout=shares,
    attention_dropout=shares,
    norm_epsilon=st.floats(1e-12, 0.99),
    center_variance=shares,
    spread_variance=shares,
)
resnets = st.lists(st.tuples(counts, counts), min_size=1, max_size=5).map(
    lambda stages: ResNetSettings(*map(tuple, zip(*stages, strict=True)))
)
images = st.builds(
    ImageSettings,
    source=st.none() | st.text(),
    classes=st.sampled_from(["fine", "coarse"]),
    crop=st.integers(0, 9),
    flip=st.booleans(),
    validation=shares,
    share=st.floats(0.01, 1),
    resize=st.none() | counts,
    rand_augment=st.floats(0, 10),
    mixup=shares,
    cutmix=shares,
    erasing=shares,
)
training = st.builds(
    TrainingSettings,
    epochs=counts,
    batch_size=counts,
    optimizer=st.sampled_from(["sgd", "adamw"]),
    learning_rate=shares,
    schedule=st.sampled_from(["cosine", "constant"]),
    devices=st.none() | counts,
    compute_dtype=st.sampled_from(["float32", "bfloat16"]),
    select=st.sampled_from(["last", "best"]),
    seed=st.integers(0, 2**32 - 1),
)


@given(st.builds(RunSettings, encoders | resnets, images, training))
def test_settings_survive_a_round_trip_through_text(settings) -> None:
    stored = json.loads(json.dumps(settings_to_json(settings)))
    assert settings_from_json(stored) == settings


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s["model"].update(kind="perceptron"), "'perceptron', but expected one of enc"),
        (lambda s: s["model"].pop("kind"), "these are no settings of a run"),
        (lambda s: s["training"].update(epoch=3), "unexpected keyword argument 'epoch'"),
        (lambda s: s["training"].update(epochs=0), "epochs=0, but expected at least 1"),
        (lambda s: s.pop("images"), "'images'.; they come from another version"),
        (lambda s: s.update(images=None), "these are no settings of a run"),
    ],
)
def test_what_is_no_settings_is_refused(change, message) -> None:
    stored = settings_to_json(RunSettings())
    change(stored)
    with pytest.raises(ValueError, match=message):
        settings_from_json(stored)


def test_a_field_that_is_not_there_is_no_default():
    stored = settings_to_json(RunSettings())
    del stored["training"]["epochs"]
    with pytest.raises(ValueError, match=r"no settings of a run .*epochs"):
        settings_from_json(stored)


def test_a_run_of_before_mixing_did_not_mix():
    """Its config has no such fields: it is read, as what it was; older fields must be there."""
    stored = settings_to_json(RunSettings())
    for name in ImageSettings.BEFORE:
        del stored["images"][name]
    assert set(stored["images"]) == {"source", "classes", "crop", "flip", "validation"}
    assert settings_from_json(stored).images == ImageSettings(**ImageSettings.BEFORE)
    del stored["images"]["crop"]
    with pytest.raises(ValueError, match=r"no settings of a run .*crop"):
        settings_from_json(stored)
