"""All that decides a run of `experiments/language.py`: model, text and training."""

from dataclasses import field
from typing import Annotated

import tyro
from pydantic import Field

from convattn.nnx.vision_transformer.settings import Epsilon, Mixing
from convattn.settings import Count, Layers, Rate, Sides, Width, settings
from convattn_lab.training.settings import TrainingSettings

RECIPE = TrainingSettings(
    epochs=6,
    batch_size=32,
    optimizer="adamw",
    learning_rate=3e-3,
    weight_decay=0.01,
)


@settings
class LanguageModelSettings:
    """Layers of causal MSAC, or of causal convolutions, and feed-forward parts (B19 §5)."""

    operator: Mixing = "attention"
    """What mixes the positions: self-attentive convolutions, or ordinary ones."""

    scales: Sides = (1, 2, 3)
    """Widths of the filters; 1 alone is ordinary causal self-attention."""

    width: Width = 64
    """Features of a position."""

    depth: Layers = 2
    """Layers."""

    heads: Width = 2
    """Of each scale."""

    key_features: Width = 16
    """Of a head's queries and keys."""

    inner: Width = 128
    """Features inside the feed-forward part."""

    dropout: Rate = 0.0
    """Probability with which a feature of a sublayer's result is dropped."""

    norm_epsilon: Epsilon = 1e-6
    """Added to the variance inside LayerNorm."""


@settings
class TextSettings:
    """Which text is trained on, and how it is divided."""

    source: str | None = None
    """A file; the reference of the Python language, as this Python has it, if not given."""
    length: Count = 128
    """Bytes that are predicted in a window."""
    validation: Rate = 0.1
    """The fraction of the text for validation, after the training part."""
    test: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """The fraction of the text for testing, at its end."""
    limit: Count | None = None
    """Take only the first so many bytes of the text."""


@settings
class LanguageSettings:
    """All that decides a run."""

    model: Annotated[LanguageModelSettings, tyro.conf.arg(name="")] = field(
        default_factory=LanguageModelSettings
    )
    text: TextSettings = field(default_factory=TextSettings)
    training: TrainingSettings = RECIPE
