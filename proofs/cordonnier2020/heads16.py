"""The quadratic model with sixteen heads on CIFAR-10.

Printed. With 16 heads instead of 9, localized heads "appear more frequently in the first few
layers" and less localized ones higher up (appendix F, Fig. 14). No accuracy is printed.

Verified. NOT RUN. Nothing is known here of where the heads end. Seen is what the training would
begin with: six layers of sixteen heads, centres and widths as printed.

Repair. Neither the accuracy nor the number of parameters is printed, and "localized" is not
defined, so that no run could reproduce the row or fail to: the verdict stays NOT RUN, and the
accuracy of a run on record is shown as what was measured, no more. That the recipe is the one of
Table 2 is taken for granted here.

Proof. None: one run is evidence for that run. It would be made by

    python experiments/cifar.py --config heads16 --download cifar10-binary

and put on record by `python experiments/record.py RUN C20.heads16`. It is put there only with the
settings of Table 2, to its last step, by committed code, on all 60,000 images from an official
archive, and from parameters that its seed drew.
"""

from pathlib import Path

from convattn.lab.records.evidence import BackingRun
from convattn.lab.records.experiments import Row, paper_settings
from convattn.ledger import Claim, Evidence, Kind, Level, Run, Verdict

VERDICT = Verdict.NOT_RUN
ROW = Row(
    "C20.heads16",
    None,
    paper_settings("quadratic", (16,) * 6),
    "python experiments/cifar.py --config heads16 --download cifar10-binary",
)


def printed_architecture(run: Run) -> str:
    """As many parameters as C20.quadratic, and 400² + 3 for each further head."""
    from convattn.lab.models.first_parameters import require_first_heads, require_size

    further = 6 * 7 * (400 * 400 + 3)
    seen = require_size(ROW.settings.model, 12_086_844 + further)
    return f"{seen}; {require_first_heads(ROW.settings.model, run)}"


CLAIM = Claim(
    id=ROW.claim,
    source="Cordonnier, Loukas, Jaggi 2020, appendix F",
    verdict=VERDICT,
    kinds=(Kind.EXPERIMENT,),
    evidence=(
        Evidence(
            "a run at the paper's size",
            Level.MEASURED,
            BackingRun(ROW, Path(__file__).with_suffix(".json"), VERDICT),
        ),
        Evidence("before training", Level.TESTED, printed_architecture),
    ),
)
