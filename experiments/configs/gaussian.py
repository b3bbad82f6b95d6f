"""The self-attention model with general Gaussians at the size of the paper.

    Repeats    C20, Table 4, "SA quadratic emb. gen."; Figs. 12, 13
    Images     all 60,000 of CIFAR-10: --data PATH, or --download cifar10-binary
    Expected   93.4 % of the test images (C20, Table 4)
    Hardware   one GPU
    Time       not measured: no run of this size has been made
    Command    python experiments/cifar.py --config gaussian --download cifar10-binary

Its degenerate heads are pruned, and training goes on at a tenth of the rate (C20, appendix E;
93.4 % in Table 4), by `python experiments/analyse.py prune RUN --output-dir DIR`.

Attention weights are not dropped here (attention_dropout 0; the authors' code has 0.1).
"""

from convattn_lab.models.settings import EncoderSettings
from convattn_lab.runs.settings import RunSettings
from convattn_lab.training.settings import TrainingSettings

CONFIG = RunSettings(
    model=EncoderSettings(encoding="gaussian"), training=TrainingSettings(compute_dtype="bfloat16")
)
