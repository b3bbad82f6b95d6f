"""The quadratic model on CIFAR-10.

Claimed. A self-attention network with the quadratic encoding reaches 93.8 % on CIFAR-10, as
ResNet18 does, and its heads end up in a grid around the query.
True. The training run was not repeated here; only the model at its start was built, with the
printed centres and widths and 12.1M parameters.

Printed. "SA quadratic emb." classifies 93.8 % of the test images, as ResNet18 does (Table 1). Its
heads begin at centres from N(0, 2I), and end "forming a grid around the query pixel" (§4.2).

Verified. NOT RUN. Nothing is known here of the accuracy, nor of the grid. Seen is what the training
would begin with: six layers of nine heads, 12.1M parameters, centres and widths as printed.

Repair. The figure has one digit after the point and comes without the number of runs or their
spread. Crops and flips are not mentioned; here pictures are padded by 4, cropped and flipped. The
text sends the reader to Figure 6 for the accuracy during training; that is Figure 2 (Figure 6 shows
attention). The authors' code draws centres with the standard deviation 2, so N(0, 4I).

Errata.
- §4.1 | accuracy during training "in Figure 6" | Misprint: in Figure 2; Figure 6 shows
  attention
- §4, Tables 1 and 4 | one accuracy for each model | Remark: of how many runs, with which crops and
  flips? | C20.learned, C20.content, C20.gaussian

Proof. None: one run is evidence for that run. It would be made by

    python experiments/cifar.py --config quadratic --download cifar10-binary

and put on record by `python experiments/record.py RUN C20.quadratic`. It backs the row only with
the settings of Table 2, to its last step, by committed code, on all 60,000 images from an official
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
        "C20.quadratic",
        0.938,
        paper_settings("quadratic"),
        "python experiments/cifar.py --config quadratic --download cifar10-binary",
        parameters="12.1M",
        first_heads=True,
    )


CLAIM = experiment_claim(
    "C20.quadratic",
    "Cordonnier, Loukas, Jaggi 2020, Table 1, §4.2",
    Verdict.NOT_RUN,
    experiment,
    __file__,
)
