"""What a run of the benchmark of training is asked for."""

from dataclasses import dataclass, field

from convattn_lab.models.settings import EncoderSettings

PAPER, TINY = EncoderSettings(), EncoderSettings(heads=(3, 2), width=16, inner=24)


@dataclass(frozen=True)
class Settings:
    """Sizes and turns of a run.

    Attributes:
        model: With the quadratic encoding.
        image_side: Of images with three channels.
        batches: Batch sizes at which steps are timed.
        memory_batch: The one at which memory is measured; None leaves that out.
        turns: How often each implementation is timed.
        resident: Measure resident memory as well, in fresh processes.
        pause: Seconds between two implementations, for the threads of the one before to sleep.
    """

    model: EncoderSettings = field(default_factory=EncoderSettings)
    image_side: int = 32
    batches: tuple[int, ...] = (20,)
    memory_batch: int | None = 100
    turns: int = 7
    resident: bool = True
    pause: float = 0.3


QUICK = Settings(TINY, 8, (3,), 4, 3, resident=False, pause=0.01)
