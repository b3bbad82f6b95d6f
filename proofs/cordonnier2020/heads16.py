"""The quadratic model with sixteen heads on CIFAR-10.

Claimed. With 16 heads in a layer instead of 9, heads that look at a small region appear more often
in the first layers.
True. The training run was not repeated here; as the paper neither defines "localized" nor prints an
accuracy, no run could confirm or refute the claim.

Printed. With 16 heads instead of 9, localized heads "appear more frequently in the first few
layers" and less localized ones higher up (appendix F, Fig. 14). No accuracy is printed.

Verified. NOT RUN. Nothing is known here of where the heads end. Seen is what the training would
begin with: six layers of sixteen heads, centres and widths as printed.

Repair. Neither the accuracy nor the number of parameters is printed, and "localized" is not
defined, so that no run could reproduce the row or fail to: the verdict stays NOT RUN, and the
accuracy of a run on record is shown as what was measured, no more. That the recipe is the one of
Table 2 is taken for granted here.

Errata.
- appendix F | 16 heads | Remark: with which accuracy?

Proof. None: one run is evidence for that run. It would be made by

    python experiments/cifar.py --config heads16 --download cifar10-binary

and put on record by `python experiments/record.py RUN C20.heads16`. It is put there only with the
settings of Table 2, to its last step, by committed code, on all 60,000 images from an official
archive, and from parameters that its seed drew.
"""

from convattn_ledger import Verdict
from convattn_ledger.evidence.experiments import experiment_claim

FURTHER = 6 * 7 * (400 * 400 + 3)  # beside C20.quadratic: 400² + 3 for each further head


def experiment():
    """The run, as the paper describes it."""
    from convattn_lab.records.experiments import paper_settings
    from convattn_lab.records.rows import Row

    return Row(
        "C20.heads16",
        None,
        paper_settings("quadratic", (16,) * 6),
        "python experiments/cifar.py --config heads16 --download cifar10-binary",
        parameters=12_086_844 + FURTHER,
        first_heads=True,
    )


CLAIM = experiment_claim(
    "C20.heads16",
    "Cordonnier, Loukas, Jaggi 2020, appendix F",
    Verdict.NOT_RUN,
    experiment,
    __file__,
)
