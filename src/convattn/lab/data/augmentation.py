"""How training images are varied."""

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Augmentation:
    """How training images are varied.

    Attributes:
        crop: black pixels put around an image, from which its size is then cut out at random.
        flip: whether it is mirrored, left for right, with probability 1/2.
        rand_augment: the mean magnitude of RandAugment's two operations, up to 10; 0 is none.
        mixup: α of Mixup; 0 is none.
        cutmix: α of CutMix; 0 is none. With both, a batch has one of them with probability 1/2.
        erasing: the probability that a box of the image is replaced by noise.

    >>> Augmentation(rand_augment=9).crop
    4
    """

    crop: int = 4
    flip: bool = True
    rand_augment: float = 0.0
    mixup: float = 0.0
    cutmix: float = 0.0
    erasing: float = 0.0

    def __post_init__(self) -> None:
        """Refuse values out of their ranges, and what is no number or no truth value."""
        if isinstance(self.crop, bool) or not isinstance(self.crop, int):
            raise ValueError(
                f"crop is {self.crop!r}, but an integer number of pixels was expected, without a "
                "decimal point; 0 is none"
            )
        if not isinstance(self.flip, bool):
            raise ValueError(
                f"flip is {self.flip!r}, but True or False was expected; it has no probability of "
                "its own"
            )
        if self.crop < 0:
            raise ValueError(
                f"crop is {self.crop}, but a number of pixels of 0 or more was expected; 0 is none"
            )
        _refuse_outside("rand_augment", self.rand_augment, 10, "a magnitude; 0 is none, DeiT's 9")
        _refuse_outside("mixup", self.mixup, LARGEST_ALPHA, "α of Mixup; 0 is none, DeiT's 0.8")
        _refuse_outside("cutmix", self.cutmix, LARGEST_ALPHA, "α of CutMix; 0 is none, DeiT's 1.0")
        _refuse_outside("erasing", self.erasing, 1, "a probability; DeiT's is 0.25")

    @property
    def mixes(self) -> bool:
        """Whether images are mixed with each other, so that targets are distributions."""
        return bool(self.mixup or self.cutmix)


LARGEST_ALPHA = 1000.0


def _refuse_outside(name: str, value: Any, largest: float, meaning: str) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and math.isfinite(value) and 0 <= value <= largest):
        raise ValueError(
            f"{name} is {value!r}, but a number from 0 to {largest:g} was expected: {meaning}"
        )
