"""The self-attention model with the quadratic encoding at the size of the paper.

    Repeats    C20, Table 1, "SA quadratic emb."; Figs. 2, 3, 4
    Images     all 60,000 of CIFAR-10: --data PATH, or --download cifar10-binary
    Expected   93.8 % of the test images (C20, Table 1)
    Hardware   one GPU
    Time       not measured: no run of this size has been made
    Command    python experiments/cifar.py --config quadratic --download cifar10-binary

Attention weights are not dropped here (attention_dropout 0; the authors' code has 0.1).
"""

from convattn_lab.models.settings import EncoderSettings
from convattn_lab.runs.settings import RunSettings
from convattn_lab.training.settings import TrainingSettings

CONFIG = RunSettings(
    model=EncoderSettings(encoding="quadratic"), training=TrainingSettings(compute_dtype="bfloat16")
)
