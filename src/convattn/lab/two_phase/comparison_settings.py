"""What is compared: conversions of one convolution network, and single phases as controls."""

from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from convattn.lab.runs.settings import RunSettings
from convattn.lab.two_phase.conversion_settings import ConversionSettings
from convattn.lab.two_phase.settings import TwoPhaseSettings

Start = Literal["limit-10", "limit-40", "exact-0.1", "exact-0.5", "exact-0.5-no-content", "random"]
CONVERSIONS: dict[str, ConversionSettings] = {
    "limit-10": ConversionSettings("limit", logit=10.0),
    "limit-40": ConversionSettings("limit", logit=40.0),
    "exact-0.1": ConversionSettings("exact", leak=0.1),
    "exact-0.5": ConversionSettings("exact", leak=0.5),
    "exact-0.5-no-content": ConversionSettings("exact", leak=0.5, content="none"),
}
RANDOM = "random"
TITLES = {
    "limit-10": "limit, M = 10",
    "limit-40": "limit, M = 40 (L21)",
    "exact-0.1": "exact, ε = 0.1",
    "exact-0.5": "exact, ε = 0.5",
    "exact-0.5-no-content": "exact, ε = 0.5, W_Q = W_K = 0",
    RANDOM: "drawn",
}
CONTROLS = {"only-convolution": "convolution alone", "only-attention": "attention alone"}


@dataclass(frozen=True)
class ComparisonSettings:
    """One first phase for each seed, and second phases that begin with it in several ways."""

    pipeline: TwoPhaseSettings = field(default_factory=TwoPhaseSettings)
    """Of all of them; its conversion does not count, and its second warm-up is that of "with"."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Each makes a first phase of its own, and everything after it."""
    starts: tuple[Start, ...] = get_args(Start)
    """How the second phase begins: the conversions, or drawn as for L21's Fig. 2."""
    warmups: tuple[Literal["with", "without"], ...] = ("with", "without")
    """Whether the second phase warms up."""
    controls: bool = True
    """Also train either phase alone, for as many epochs as both have together."""

    def __post_init__(self) -> None:
        """Refuse what is no comparison.

        Raises:
            ValueError: With what was expected.

        >>> ComparisonSettings(seeds=())
        Traceback (most recent call last):
        ValueError: seeds=(), but expected one number at least, and none twice
        """
        for name, choices in (
            ("seeds", None),
            ("starts", get_args(Start)),
            ("warmups", ("with", "without")),
        ):
            values = getattr(self, name)
            if not values or len(set(values)) != len(values):
                raise ValueError(
                    f"{name}={values}, but expected one number at least, and none twice"
                    if choices is None
                    else f"{name}={values}, but expected one at least of {', '.join(choices)}, and "
                    "none twice"
                )
            unknown = [value for value in values if choices is not None and value not in choices]
            if unknown:
                raise ValueError(
                    f"{name}={values}, but expected some of {', '.join(choices or ())}"
                )
        if "with" in self.warmups and not self.pipeline.training_two.warmup:
            raise ValueError(
                "pipeline.training_two.warmup=0, but second phases with a warm-up are asked for; "
                "give it a share, or warmups=('without',)"
            )

    def phase_one(self, seed: int) -> RunSettings:
        """The first phase of a seed."""
        return self.pipeline.with_seed(seed).phase_one

    def converted(self, seed: int, start: str, warmup: str) -> TwoPhaseSettings:
        """The pipeline of a conversion.

        >>> ComparisonSettings().converted(1, "exact-0.1", "without").phase_two.training.warmup
        0.0
        """
        given = self.pipeline.with_seed(seed)
        share = given.training_two.warmup if warmup == "with" else 0.0
        return replace(
            given,
            conversion=CONVERSIONS[start],
            training_two=replace(given.training_two, warmup=share),
        )

    def drawn(self, seed: int, warmup: str) -> RunSettings:
        """A second phase that begins with drawn parameters, otherwise like that of the limit."""
        return self.converted(seed, "limit-40", warmup).phase_two

    def control(self, seed: int, name: str) -> RunSettings:
        """One phase alone for the epochs of both, which warms up in as many as the first phase.

        >>> settings = ComparisonSettings()
        >>> settings.control(0, "only-attention").training.epochs
        600
        """
        given = self.pipeline.with_seed(seed)
        epochs = given.training_one.epochs + given.training_two.epochs
        alone = given.phase_one
        if name == "only-attention":
            # It begins with drawn parameters, as the first phase does, so it has that one's rate.
            alone = replace(self.drawn(seed, "with"), training=given.training_one)
        warm = given.training_one.warmup * given.training_one.epochs / epochs
        return replace(alone, training=replace(alone.training, epochs=epochs, warmup=warm))
