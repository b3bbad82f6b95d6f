"""The model with learned encodings and content on CIFAR-10.

Claimed. A self-attention network with learned position encodings and content reaches 87.1 % on
CIFAR-10, and in layers 2 and 3 some heads attend to a fixed shift.
True. The training run was not repeated here; only the model was built, with six layers of nine
heads and 29.5M parameters.

Printed. "SA learned emb. + content" classifies 87.1 % of the test images (Table 1), and was "harder
to train". In layers 2 and 3 some heads attend to pixels at a fixed shift (§4.3, Figs. 6 to 10).

Verified. NOT RUN. Nothing is known here of the accuracy, nor of the attention. Seen is the model
that would be trained: six layers of nine heads, 29.5M parameters.

Repair. The figure has one digit after the point and comes without the number of runs or their
spread. Crops and flips are not mentioned; here pictures are padded by 4, cropped and flipped. The
distribution from which tables, queries and keys begin is left open; here they begin as in the
authors' code, and scores are divided by √400 as there, which eq. 2 does not say.

Proof. None: one run is evidence for that run. It would be made by

    python experiments/cifar.py --config content --download cifar10-binary

and put on record by `python experiments/record.py RUN C20.content`. It backs the row only with the
settings of Table 2, to its last step, by committed code, on all 60,000 images from an official
archive, and from parameters that its seed drew; neither fewer epochs or images nor recompressed
ones do.
"""

from convattn_ledger import Verdict
from convattn_ledger.evidence.experiments import experiment_claim


def experiment():
    """The run, as the paper describes it."""
    from convattn_lab.records.experiments import paper_settings
    from convattn_lab.records.rows import Row

    return Row(
        "C20.content",
        0.871,
        paper_settings("content"),
        "python experiments/cifar.py --config content --download cifar10-binary",
        parameters="29.5M",
    )


CLAIM = experiment_claim(
    "C20.content",
    "Cordonnier, Loukas, Jaggi 2020, Table 1, §4.3",
    Verdict.NOT_RUN,
    experiment,
    __file__,
)
