"""RandAugment's operations on one image, in integer arithmetic, as Pillow has them."""
