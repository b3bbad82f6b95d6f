"""How training images are augmented; loads no JAX."""

from typing import Annotated

from pydantic import Field

from convattn.settings import MAX_SIDE, Alpha, Fraction, settings


@settings
class Augmentation:
    """How training images are augmented.

    >>> Augmentation(rand_augment=9).crop
    4
    """

    crop: Annotated[int, Field(ge=0, le=MAX_SIDE)] = 4
    """Training pictures are padded by so many black pixels and cropped at random; 0 for none."""
    flip: bool = True
    """Half of the training pictures are mirrored."""
    rand_augment: Annotated[float, Field(ge=0, le=10)] = 0.0
    """RandAugment's mean magnitude, up to 10, of two operations; 0 for none, in DeiT 9."""
    mixup: Alpha = 0.0
    """α of Mixup; 0 for none, in DeiT 0.8."""
    cutmix: Alpha = 0.0
    """α of CutMix; 0 for none, in DeiT 1. With both, each batch has one of them."""
    erasing: Fraction = 0.0
    """The probability that a box of a training picture is noise; 0 for none, in DeiT 0.25."""

    @property
    def mixes(self) -> bool:
        """Whether images are mixed with each other, so that targets are distributions."""
        return bool(self.mixup or self.cutmix)
