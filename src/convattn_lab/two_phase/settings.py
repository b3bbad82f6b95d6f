"""All that decides a pipeline of two phases, and a comparison of such pipelines."""

import math
from dataclasses import field, replace
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from convattn.nnx.vision_transformer.settings import VisionTransformerSettings
from convattn.operators.shifts import axis_token_offsets
from convattn.settings import Count, Positive, settings
from convattn_lab.runs.settings import LATER, ImageSettings, RunSettings
from convattn_lab.settings import from_json
from convattn_lab.training.settings import TrainingSettings

Value = TypeVar("Value")


@settings
class ConversionSettings:
    """How the attention phase begins."""

    kind: Literal["limit", "exact"] = "limit"
    """L21's own, (2m + 1)² heads that are one-hot in the limit M → ∞; or S.finite's, one head more
    and exact at any leak."""

    logit: Positive = 40.0
    """M > 0 of the limit: a head's bias at its shift. 40 is L21's; ignored if exact."""

    leak: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """ε in (0, 1) of the exact one: the fraction of each head that attends uniformly; rounding
    grows like 1/(1 - ε). Ignored in the limit."""

    content: Literal["key", "none"] = "key"
    """W_Q = 0 and W_K drawn, so that W_Q learns from the first step; or both zero, as in L21's
    proof, where neither ever learns. The function is the same."""

    border: Literal["kept", "mean"] = "kept"
    """What the convolution has outside its images: zero tokens laid around the grid if it has
    zeros. Or, without them, the mean of all tokens whatever the convolution had (L21)."""

    def total_variation(self, number_of_keys: int) -> float:
        """How far a converted head is from what the convolution reads: (N - 1)/(e^M + N - 1).

        The exact kind leaks as much, and takes it back: 0.

        Args:
            number_of_keys: N, the ring included.

        Source: L21 eq. 10; S.saturation of this project's ledger.

        >>> round(ConversionSettings(logit=10.0).total_variation(256), 4)
        0.0114
        """
        if self.kind == "exact":
            return 0.0
        others = (number_of_keys - 1) * math.exp(-self.logit)
        return others / (1 + others)


def phase_two_settings(
    settings_one: VisionTransformerSettings, conversion: ConversionSettings
) -> VisionTransformerSettings:
    """The attention phase that follows a convolution phase.

    >>> settings = VisionTransformerSettings("convolution", kernel_size=5)
    >>> two = phase_two_settings(settings, ConversionSettings("exact"))
    >>> two.mixing, two.heads, two.ring
    ('attention', 10, 1)
    """
    reach = axis_token_offsets(settings_one.kernel_size, settings_one.patch_size, 1)
    keeps_zeros = settings_one.border == "zero" and conversion.border == "kept"
    return replace(
        settings_one,
        mixing="attention",
        heads=len(reach) ** 2 + (conversion.kind == "exact"),
        head_width=None,
        position="relative",
        ring=reach[-1] if keeps_zeros else 0,
    )


@settings
class TwoPhaseSettings:
    """Train a convolution, turn it into attention, and go on training."""

    model: VisionTransformerSettings = field(
        default_factory=lambda: VisionTransformerSettings("convolution")
    )
    """Of the convolution phase; the attention phase follows from it and the conversion."""
    images: ImageSettings = field(default_factory=ImageSettings)
    training_one: TrainingSettings = field(default_factory=TrainingSettings)
    """Of the convolution phase."""
    training_two: TrainingSettings = field(default_factory=TrainingSettings)
    """Of the attention phase; its own warm-up, which 0 leaves out."""
    conversion: ConversionSettings = field(default_factory=ConversionSettings)
    check_images: Count = 4
    """Test images on which both networks are held against the derived bound before going on."""

    def __post_init__(self) -> None:
        if self.model.mixing != "convolution":
            raise ValueError(
                f"model.mixing={self.model.mixing!r}, but expected 'convolution': the first phase "
                "is one of convolutions; the second follows from it"
            )
        if self.model.position != "relative" or self.model.pooling != "mean":
            raise ValueError(
                f"model.position={self.model.position!r} and model.pooling={self.model.pooling!r}, "
                "but expected 'relative' and 'mean': a convolution has no other"
            )

    @property
    def phase_one(self) -> RunSettings:
        """The run of the convolution phase."""
        return RunSettings(self.model, self.images, self.training_one)

    @property
    def phase_two(self) -> RunSettings:
        """The run of the attention phase.

        >>> TwoPhaseSettings().phase_two.model.heads
        9
        """
        model = phase_two_settings(self.model, self.conversion)
        return RunSettings(model, self.images, self.training_two)

    def with_seed(self, seed: int) -> "TwoPhaseSettings":
        """The same with another seed in both phases.

        >>> TwoPhaseSettings().with_seed(3).training_two.seed
        3
        """
        return replace(
            self,
            training_one=replace(self.training_one, seed=seed),
            training_two=replace(self.training_two, seed=seed),
        )


Start = Literal["limit-10", "limit-40", "exact-0.1", "exact-0.5", "exact-0.5-no-content", "random"]
RANDOM = "random"
CONVERSIONS: dict[str, ConversionSettings] = {
    "limit-10": ConversionSettings("limit", logit=10.0),
    "limit-40": ConversionSettings("limit", logit=40.0),
    "exact-0.1": ConversionSettings("exact", leak=0.1),
    "exact-0.5": ConversionSettings("exact", leak=0.5),
    "exact-0.5-no-content": ConversionSettings("exact", leak=0.5, content="none"),
}
TITLES = {
    "limit-10": "limit, M = 10",
    "limit-40": "limit, M = 40 (L21)",
    "exact-0.1": "exact, ε = 0.1",
    "exact-0.5": "exact, ε = 0.5",
    "exact-0.5-no-content": "exact, ε = 0.5, W_Q = W_K = 0",
    RANDOM: "random initialisation",
}
CONTROLS = {"only-convolution": "convolution alone", "only-attention": "attention alone"}


def _distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(set(values)) != len(values):
        raise PydanticCustomError("distinct", "none of them twice")
    return values


Distinct = Annotated[tuple[Value, ...], Field(min_length=1), AfterValidator(_distinct)]


@settings
class ComparisonSettings:
    """One first phase for each seed, and second phases that begin with it in several ways."""

    pipeline: TwoPhaseSettings = field(default_factory=TwoPhaseSettings)
    """Of all of them; its conversion does not count, and its second warm-up is that of "with"."""
    seeds: Distinct[int] = (0, 1, 2)
    """Each makes a first phase of its own, and everything after it."""
    starts: Distinct[Start] = get_args(Start)
    """How the second phase begins: the conversions, or drawn as for L21's Fig. 2."""
    warmups: Distinct[Literal["with", "without"]] = ("with", "without")
    """Whether the second phase warms up."""
    controls: bool = True
    """Also train either phase alone, for as many epochs as both have together."""

    def __post_init__(self) -> None:
        if "with" in self.warmups and not self.pipeline.training_two.warmup:
            raise ValueError(
                "pipeline.training_two.warmup=0, but expected a fraction above 0, as second phases "
                "with a warm-up are asked for; give it one, or warmups=('without',)"
            )

    def phase_one(self, seed: int) -> RunSettings:
        """The first phase of a seed."""
        return self.pipeline.with_seed(seed).phase_one

    def converted(self, seed: int, start: str, warmup: str) -> TwoPhaseSettings:
        """The pipeline of a conversion.

        >>> ComparisonSettings().converted(1, "exact-0.1", "without").phase_two.training.warmup
        0.0
        """
        pipeline = self.pipeline.with_seed(seed)
        warm = pipeline.training_two.warmup if warmup == "with" else 0.0
        return replace(
            pipeline,
            conversion=CONVERSIONS[start],
            training_two=replace(pipeline.training_two, warmup=warm),
        )

    def random_start(self, seed: int, warmup: str) -> RunSettings:
        """A second phase that begins with random parameters, otherwise like that of the limit."""
        return self.converted(seed, "limit-40", warmup).phase_two

    def control(self, seed: int, name: str) -> RunSettings:
        """One phase alone for the epochs of both, which warms up in as many as the first phase.

        >>> settings = ComparisonSettings()
        >>> settings.control(0, "only-attention").training.epochs
        600
        """
        pipeline = self.pipeline.with_seed(seed)
        epochs = pipeline.training_one.epochs + pipeline.training_two.epochs
        alone = pipeline.phase_one
        if name == "only-attention":
            # It begins with random parameters, as the first phase does: it has that one's rate.
            alone = replace(self.random_start(seed, "with"), training=pipeline.training_one)
        warm = pipeline.training_one.warmup * pipeline.training_one.epochs / epochs
        return replace(alone, training=replace(alone.training, epochs=epochs, warmup=warm))


def two_phase_from_json(stored: Any) -> TwoPhaseSettings:
    """The settings of a `two_phase.json`.

    Raises:
        ValueError: As `from_json`.
    """
    return from_json(TwoPhaseSettings, stored, later=LATER)


def comparison_from_json(stored: Any) -> ComparisonSettings:
    """The settings of a `comparison.json`.

    Raises:
        ValueError: As `from_json`.
    """
    later = tuple(f"pipeline.{name}" for name in LATER)
    return from_json(ComparisonSettings, stored, later=later)
