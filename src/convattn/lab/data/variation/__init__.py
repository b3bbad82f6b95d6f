"""DeiT's augmentation, on the device: RandAugment, random erasing, Mixup, CutMix; and resizing.

Shapes, magnitudes and proportions are drawn from tables that the host makes once, by integers that
`jax.random.bits` gives, and RandAugment computes with integers throughout: its pixels are the same
on every kind of device, whatever the compiler does, and with JAX's 64-bit types on or off.
"""

RAND_AUGMENT, ERASING, MIXING = 16, 17, 18
"""What an image's key is folded with; beyond the counters 0 … 2 of the words for crop and flip."""
