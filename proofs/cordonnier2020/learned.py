"""The model with learned row and column encodings on CIFAR-10.

Claimed. A self-attention network with learned position encodings reaches 91.8 % on CIFAR-10, and
some heads of its first layers attend to single pixels.
True. The training run was not repeated here; only the model was built, with six layers of nine
heads and 12.3M parameters.

Printed. "SA learned emb." classifies 91.8 % of the test images (Table 1). In the first layers some
of its heads attend to single pixels (§4.3, Fig. 5).

Verified. NOT RUN. Nothing is known here of the accuracy, nor of the attention. Seen is the model
that would be trained: six layers of nine heads, 12.3M parameters.

Repair. The figure has one digit after the point and comes without the number of runs or their
spread. Crops and flips are not mentioned; here pictures are padded by 4, cropped and flipped.
"Randomly initialized vectors" leaves their distribution open; here tables begin as N(0, 1), as in
the authors' code. The printed ⌊D_p/2⌋ = 200 numbers for each axis do not give the printed 12.3M
(C20.table1).

Proof. None: one run is evidence for that run. It would be made by

    python experiments/cifar.py --config learned --download cifar10-binary

and put on record by `python experiments/record.py RUN C20.learned`. It backs the row only with the
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
        "C20.learned",
        0.918,
        paper_settings("learned"),
        "python experiments/cifar.py --config learned --download cifar10-binary",
        parameters="12.3M",
    )


CLAIM = experiment_claim(
    "C20.learned",
    "Cordonnier, Loukas, Jaggi 2020, Table 1, §4.3",
    Verdict.NOT_RUN,
    experiment,
    __file__,
)
