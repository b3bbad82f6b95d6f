"""`TwoPhaseSettings`: all that decides a pipeline of two phases; what its configs hold."""

from dataclasses import dataclass, field, replace

from convattn.lab.models.settings import VisionTransformerSettings
from convattn.lab.runs.settings import ImageSettings, RunSettings
from convattn.lab.training.settings import TrainingSettings
from convattn.lab.two_phase.conversion_settings import ConversionSettings
from convattn.lab.two_phase.transfer import phase_two_settings


@dataclass(frozen=True)
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
    check_images: int = 4
    """Test images on which both networks are held against the derived bound before going on."""

    def __post_init__(self) -> None:
        """Refuse what is no pipeline.

        Raises:
            ValueError: With what was expected.

        >>> TwoPhaseSettings(VisionTransformerSettings("attention"))
        Traceback (most recent call last):
        ValueError: model.mixing='attention', but the first phase is one of convolutions; the \
second follows from it
        """
        if self.model.mixing != "convolution":
            raise ValueError(
                f"model.mixing={self.model.mixing!r}, but the first phase is one of convolutions; "
                "the second follows from it"
            )
        if self.model.position != "relative" or self.model.pooling != "mean":
            raise ValueError(
                f"model.position={self.model.position!r} and model.pooling={self.model.pooling!r}, "
                "but what a convolution can begin has 'relative' and 'mean'"
            )
        if self.check_images < 1:
            raise ValueError(f"check_images={self.check_images}, but expected at least 1")

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
