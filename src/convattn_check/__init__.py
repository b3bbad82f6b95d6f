"""The independent checker of certificates: standard library only, nothing of convattn.

A certificate is a small JSON file. What it says is in ``docs/certificates.md``; that it is true is
decided here, by integers and fractions alone::

    PYTHONPATH=src python3 -m convattn_check certificates/*.json

Where to read what is checked, in the order of the mathematics:

| file             | holds                                                                    |
|------------------|--------------------------------------------------------------------------|
| `reading.py`     | canonical JSON, exact fields, exact numbers                              |
| `checking.py`    | the top level, the digests, the choice of the check                      |
| `claims.py`      | what each claim demands of its certificate                               |
| `convolution.py` | the convolution, from its definition                                     |
| `attention.py`   | what each family of heads attends to                                     |
| `values.py`      | the coefficients of the value maps                                       |
| `equality.py`    | layer = convolution, for every kernel and every image                    |
| `lower_bound.py` | fewer heads than this cannot do it                                       |
| `border.py`      | without a ring, no softmax layer zero-pads                               |
| `shared_map.py`  | spans at every query, and yet no value maps for all                      |
| `rank.py`        | the rank of a head's map                                                 |
| `saturation.py`  | how small a quadratic head's weights are off its target                  |
| `elimination.py` | rank and determinant, fraction-free                                      |
"""

from convattn_check.checking import check as check
from convattn_check.verdict import Verdict as Verdict
