"""DeiT's augmentation, on the device: RandAugment, random erasing, Mixup and CutMix.

Shapes, magnitudes and proportions are drawn from tables that the host makes once, by integers that
`jax.random.bits` gives: the draws are the same on every kind of device, and with JAX's 64-bit types
on or off.
"""
