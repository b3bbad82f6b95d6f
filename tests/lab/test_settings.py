"""All settings: ranges are refused by name, and JSON brings back what was written."""

import dataclasses
import json
from math import inf, nan

import hypothesis.strategies as st
import pytest
from hypothesis import given

from convattn.nnx.vision_transformer.settings import VisionTransformerSettings
from convattn_lab.analysis.prune import Thresholds
from convattn_lab.models.settings import (
    EncoderSettings,
    ResNetSettings,
    SelfAttentiveResNetSettings,
)
from convattn_lab.runs.settings import LATER, ImageSettings, RunSettings, settings_from_json
from convattn_lab.settings import changed_fields, flattened, from_json, to_json
from convattn_lab.training.settings import TrainingSettings
from convattn_lab.two_phase.settings import (
    ComparisonSettings,
    ConversionSettings,
    TwoPhaseSettings,
    comparison_from_json,
    two_phase_from_json,
)

CONVOLUTION = VisionTransformerSettings("convolution")
ABSOLUTE = VisionTransformerSettings("convolution", position="absolute")
COUNT, NATURAL, NUMBER = "expected at least 1$", "expected at least 0$", "expected a valid number$"
RATE = "expected less than 1$"
INVALID = [  # settings, a field, a wrong value of it, what is expected
    *((EncoderSettings, name, 0, COUNT) for name in ("width", "inner", "downsampling")),
    (EncoderSettings, "encoding", "sinusoidal", "expected 'quadratic', 'gaussian', 'learned' or"),
    (EncoderSettings, "heads", (), "expected at least 1 item"),
    (EncoderSettings, "heads", (9, -1), r"heads\.1=-1, but expected at least 0"),
    (EncoderSettings, "heads", (9, True), r"heads\.1=True, but expected an integer"),
    (EncoderSettings, "heads", 9, "expected a valid tuple"),
    (EncoderSettings, "inner", 1.5, "expected an integer$"),
    (EncoderSettings, "dropout", 1.0, RATE),
    (EncoderSettings, "dropout", "0.1", NUMBER),
    (EncoderSettings, "attention_dropout", -0.1, NATURAL),
    (EncoderSettings, "attention_dropout", True, NUMBER),
    (EncoderSettings, "norm_epsilon", 1e-21, "expected at least 1e-20"),
    (EncoderSettings, "center_variance", 1.1e6, "expected at most 1000000$"),
    (EncoderSettings, "center_variance", nan, "expected a finite number"),
    (EncoderSettings, "spread_variance", inf, "expected a finite number"),
    (ResNetSettings, "channels", (2, 0, 2, 2), r"channels\.1=0"),
    (ResNetSettings, "blocks", (2, 2, 2), "expected as many of the one as of the other"),
    (SelfAttentiveResNetSettings, "operator", "attention", "expected 'convolution', 'sac' or"),
    (SelfAttentiveResNetSettings, "channels", (2,), "expected as many of the one as of the other"),
    (SelfAttentiveResNetSettings, "scales", (), "expected at least 1 item"),
    (SelfAttentiveResNetSettings, "kernel_size", 2, "expected an odd number"),
    (SelfAttentiveResNetSettings, "center_bias", -101.0, "expected at least -100"),
    *((VisionTransformerSettings, name, 0, COUNT) for name in ("depth", "head_width", "heads")),
    (VisionTransformerSettings, "mixing", "sac", "expected 'attention' or 'convolution'"),
    (VisionTransformerSettings, "kernel_size", 2, "expected an odd number"),
    (VisionTransformerSettings, "ring", -1, NATURAL),
    (VisionTransformerSettings, "stochastic_depth", 1.0, RATE),
    (VisionTransformerSettings, "norm_epsilon", 0.0, "expected at least 1e-12"),
    (VisionTransformerSettings, "pooling", "class", "a class token has no shift"),
    (VisionTransformerSettings, "rotary_base", 1.0, "expected more than 1$"),
    *((TrainingSettings, name, 0, COUNT) for name in ("epochs", "batch_size", "devices")),
    *((TrainingSettings, name, 0, COUNT) for name in ("evaluate_every", "keep_checkpoints")),
    *((TrainingSettings, name, 0, COUNT) for name in ("steps_per_call", "snapshot_every")),
    *((TrainingSettings, name, -0.1, NATURAL) for name in ("learning_rate", "weight_decay")),
    *((TrainingSettings, name, -1e-9, NATURAL) for name in ("checkpoint_minutes", "epsilon")),
    *((TrainingSettings, name, 1.0, RATE) for name in ("momentum", "beta1", "beta2")),
    (TrainingSettings, "label_smoothing", 1.0, RATE),
    (TrainingSettings, "warmup", 1.5, "expected at most 1$"),
    (EncoderSettings, "width", 2**18 + 2, "expected at most 262144"),
    (EncoderSettings, "heads", (1,) * 257, "expected at most 256 items"),
    (VisionTransformerSettings, "depth", 257, "expected at most 256"),
    (VisionTransformerSettings, "patch_size", 1025, "expected at most 1024"),
    (VisionTransformerSettings, "kernel_size", 1025, "expected at most 1024"),
    (ResNetSettings, "blocks", (64,) * 5, "expected at most 256 in all"),
    (TrainingSettings, "seed", 2**32, "expected less than 4294967296"),
    (TrainingSettings, "select", "test", "expected 'last' or 'best'"),
    (ImageSettings, "classes", "all", "expected 'fine' or 'coarse'"),
    (ImageSettings, "crop", -1, NATURAL),
    (ImageSettings, "flip", 1, "expected a valid boolean"),
    (ImageSettings, "validation", 1.0, RATE),
    (ImageSettings, "share", 0.0, "expected more than 0"),
    (ImageSettings, "share", 1.5, "expected at most 1$"),
    (ImageSettings, "resize", 1025, "expected at most 1024"),
    (ImageSettings, "resize", 224.0, "expected an integer"),
    (ImageSettings, "rand_augment", 11, "expected at most 10"),
    (ImageSettings, "mixup", -1, NATURAL),
    (ImageSettings, "erasing", 2, "expected at most 1$"),
    (ConversionSettings, "kind", "finite", "expected 'limit' or 'exact'"),
    (ConversionSettings, "logit", 0.0, "expected more than 0"),
    (ConversionSettings, "logit", inf, "expected a finite number"),
    (ConversionSettings, "leak", 1, RATE),
    (TwoPhaseSettings, "check_images", 0, COUNT),
    (TwoPhaseSettings, "model", VisionTransformerSettings(), "the first phase is one of conv"),
    *((Thresholds, name, 0.0, "more than 0") for name in ("eigenvalue", "condition")),
    *((Thresholds, name, nan, "a finite number") for name in ("eigenvalue", "condition")),
    (ComparisonSettings, "seeds", (), "expected at least 1 item"),
    (ComparisonSettings, "seeds", (1, 1), "none of them twice"),
    (ComparisonSettings, "starts", ("drawn",), r"starts\.0='drawn', but expected 'limit-10'"),
]


@pytest.mark.parametrize(("kind", "name", "value", "message"), INVALID)
def test_a_value_out_of_range_is_refused_by_name(kind, name, value, message) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**{name: value})
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(kind(), **{name: value})


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (EncoderSettings, {"encoding": "content", "width": 7}, "an even number"),
        (VisionTransformerSettings, {"pooling": "class", "ring": 1}, "no place in an image"),
        (VisionTransformerSettings, {"mixing": "convolution", "width": 100}, "of the 256 pixels"),
        *(
            (VisionTransformerSettings, {"position": "rotary", name: value}, "position='rotary'")
            for name, value in (("ring", 1), ("head_width", 6), ("attention_dropout", 0.1))
        ),
        (VisionTransformerSettings, {"position": "rotary", "pooling": "class"}, "expected 'mean'"),
        (TwoPhaseSettings, {"model": ABSOLUTE}, "'rel"),
        (RunSettings, {"modell": 3}, "modell=3, but expected no setting of that name"),
    ],
)
def test_what_does_not_fit_together_is_refused(kind, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**options)


KINDS = {row[0] for row in INVALID} | {RunSettings}
FIELDS = [(kind, field.name) for kind in KINDS for field in dataclasses.fields(kind)]


def test_every_field_of_every_settings_has_a_type_that_is_checked() -> None:
    assert len(FIELDS) > 90
    for kind, name in FIELDS:
        with pytest.raises(ValueError, match=f"^{name}(.kind)?=.*, but expected"):
            kind(**{name: object()})


fractions = st.floats(0, 0.99)
counts = st.integers(1, 40)
encoders = st.builds(
    EncoderSettings,
    heads=st.lists(st.integers(0, 20), min_size=1, max_size=7).map(tuple),
    width=counts.map(lambda half: 2 * half),
    dropout=fractions,
    norm_epsilon=st.floats(1e-12, 0.99),
)
resnets = st.lists(st.tuples(counts, counts), min_size=1, max_size=5).map(
    lambda stages: ResNetSettings(*map(tuple, zip(*stages, strict=True)))
)
others = st.sampled_from([SelfAttentiveResNetSettings(), VisionTransformerSettings(), CONVOLUTION])
images = st.builds(
    ImageSettings,
    source=st.sampled_from([None, "", "a/b c", '\u00fc\n\\"', "\U0001f600"]),
    share=st.floats(0.01, 1),
    resize=st.none() | counts,
)
training = st.builds(TrainingSettings, learning_rate=fractions, seed=st.integers(0, 2**32 - 1))


@given(st.builds(RunSettings, encoders | resnets | others, images, training))
def test_settings_survive_a_round_trip_through_text(settings) -> None:
    stored = json.loads(json.dumps(to_json(settings)))
    result = settings_from_json(stored)
    assert result == settings
    assert type(result.model) is type(settings.model)
    assert hash(result) == hash(settings)


def test_pipelines_and_comparisons_survive_it_too() -> None:
    for settings, read in (
        (TwoPhaseSettings(conversion=ConversionSettings("exact")), two_phase_from_json),
        (ComparisonSettings(seeds=(3,), starts=("random",)), comparison_from_json),
    ):
        assert read(json.loads(json.dumps(to_json(settings)))) == settings


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s["model"].update(kind="perceptron"), "model.kind='perceptron', but expected '"),
        (lambda s: s["model"].pop("kind"), "model.kind=None, but expected the name of a kind"),
        (lambda s: s["training"].update(epoch=3), r"training\.epoch=3, but expected no setting"),
        (lambda s: s["training"].update(epochs=0), r"training\.epochs=0, but expected at least 1"),
        (lambda s: s["training"].update(seed=1.5), r"training\.seed=1\.5, but expected an integer"),
        (lambda s: s.pop("images"), r"images\.classes, images\.crop.* missing"),
        (lambda s: s["training"].pop("epochs"), r"training\.epochs missing"),
        (lambda s: s["images"].pop("crop"), r"images\.crop missing"),
        (lambda s: s.update(images=None), "images=None, but expected"),
    ],
)
def test_what_is_not_the_settings_of_a_run_is_refused(change, message) -> None:
    """A field that is missing is no default, which need not be what it was."""
    stored = to_json(RunSettings())
    change(stored)
    with pytest.raises(ValueError, match=f"not the settings of a run: .*{message}"):
        settings_from_json(stored)
    with pytest.raises(ValueError, match="not the settings of a run"):
        from_json(RunSettings, [stored])


# A folder of a run as one was written before images could be mixed, to the byte.
WRITTEN = """{
  "model": {
    "kind": "encoder", "encoding": "gaussian", "heads": [9, 3], "width": 64, "inner": 128,
    "downsampling": 4, "dropout": 0.1, "attention_dropout": 0.0, "norm_epsilon": 1e-12,
    "center_variance": 2.0, "spread_variance": 0.01
  },
  "images": {"source": null, "classes": "fine", "crop": 4, "flip": true, "validation": 0.0},
  "training": {
    "epochs": 40, "batch_size": 50, "optimizer": "adamw", "learning_rate": 0.002, "warmup": 0.05,
    "schedule": "cosine", "momentum": 0.9, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-08,
    "weight_decay": 0.05, "label_smoothing": 0.0, "compute_dtype": "float32", "devices": null,
    "steps_per_call": null, "evaluate_every": 1, "snapshot_every": null, "checkpoint_minutes": 5.0,
    "keep_checkpoints": 2, "select": "last", "seed": 0
  }
}"""


def test_a_run_that_was_written_earlier_is_read() -> None:
    result = settings_from_json(json.loads(WRITTEN))
    assert result.model == EncoderSettings(
        "gaussian", heads=(9, 3), width=64, inner=128, downsampling=4
    )
    assert result.images == ImageSettings()
    assert (result.images.share, result.images.resize, result.images.mixup) == (1.0, None, 0.0)
    assert result.training.learning_rate == 0.002
    written = flattened(json.loads(WRITTEN))
    again = flattened(to_json(result))
    assert {name: again[name] for name in written} == written
    assert set(again) == {*written, *LATER} - {"model.rotary_base"}


def test_a_vision_transformer_that_was_written_earlier_is_read() -> None:
    settings = RunSettings(VisionTransformerSettings(position="absolute"))
    stored = to_json(settings)
    del stored["model"]["rotary_base"]
    assert settings_from_json(stored) == settings


def test_numbers_are_told_apart_from_integers_by_json_alone() -> None:
    assert changed_fields(ImageSettings(mixup=1), ImageSettings(mixup=1.0)) == []
    assert type(ImageSettings(mixup=1).mixup) is float
    assert changed_fields(RunSettings(), RunSettings(ResNetSettings())) != []
