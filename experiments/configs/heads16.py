"""The quadratic model with sixteen heads in each layer.

    Repeats    C20, appendix F; Fig. 14
    Images     all 60,000 of CIFAR-10: --data PATH, or --download cifar10-binary
    Expected   no accuracy is printed
    Hardware   one GPU
    Time       not measured: no run of this size has been made
    Command    python experiments/cifar.py --config heads16 --download cifar10-binary

Attention weights are not dropped here (attention_dropout 0; the authors' code has 0.1).
"""

from convattn_lab.models.settings import EncoderSettings
from convattn_lab.runs.settings import RunSettings
from convattn_lab.training.settings import TrainingSettings

CONFIG = RunSettings(
    model=EncoderSettings(encoding="quadratic", heads=(16,) * 6),
    training=TrainingSettings(compute_dtype="bfloat16"),
)
