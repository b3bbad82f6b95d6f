"""ViT-B/16 from random parameters.

    Repeats    L21, Table 1, "ViT-base"
    Images     all 60,000 of CIFAR-100, enlarged: --data PATH, or --download cifar100-binary
    Expected   60.90 % of the test images (L21, Table 1)
    Hardware   one GPU
    Time       not measured: no run of this size has been made
    Command    python experiments/cifar.py --config vit_base --download cifar100-binary

Crops and flips alone augment the images: L21 sets it beside DeiT as trained without its strategies.
"""

from dataclasses import replace

from convattn_lab.models.presets import vit_base
from convattn_lab.records.experiments import EPOCHS, deit_training
from convattn_lab.runs.settings import ImageSettings, RunSettings

CONFIG = RunSettings(
    model=vit_base(),
    images=ImageSettings(crop=4, flip=True, resize=224),
    training=replace(deit_training(3e-4, 2 * EPOCHS), label_smoothing=0.0),
)
