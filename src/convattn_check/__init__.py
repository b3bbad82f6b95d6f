"""The independent checker of certificates: standard library only, nothing of convattn.

A certificate is a small JSON file. What it says is in ``docs/certificates.md``; that it is true is
decided here, by integers and fractions alone::

    PYTHONPATH=src python3 -m convattn_check certificates/*.json

Where to read what is checked, in the order of the mathematics:

| file                 | holds                                                                 |
|----------------------|-----------------------------------------------------------------------|
| `reading.py`         | canonical JSON, exact fields, exact numbers                           |
| `reject.py`          | how a check says no                                                   |
| `cost.py`            | bounds on what is computed                                            |
| `checking.py`        | the top level, the digests, the choice of the check                   |
| `verdict.py`         | what comes of a check                                                 |
| `command.py`         | the command line                                                      |
| `claims.py`          | what each claim demands of its certificate                            |
| `convolution.py`     | the convolution, from its definition                                  |
| `attention.py`       | what each family of heads attends to                                  |
| `values.py`          | the coefficients of the value maps                                    |
| `equality.py`        | layer = convolution, for every kernel and every image                 |
| `lower_bound.py`     | fewer heads than this cannot do it                                    |
| `head_dimension.py`  | how many heads of a given dimension it takes, and how many suffice    |
| `narrow_heads.py`    | heads that share the coordinates of a token, for every kernel         |
| `given_kernel.py`    | one given kernel, and heads that serve every image size               |
| `kernel_heads.py`    | how many heads one given kernel takes at finite scores                |
| `approximation.py`   | how near fewer heads come to it                                       |
| `border.py`          | without a ring, no softmax layer zero-pads                            |
| `shared_map.py`      | spans at every query, and yet no value maps for all                   |
| `rank.py`            | the rank of a head's map                                              |
| `saturation.py`      | how small a quadratic head's weights are off its target               |
| `total_variation.py` | how far a row of attention is from its limit                          |
| `commutant.py`       | which matrices commute with the shifts of a grid                      |
| `identity.py`        | two formulas are the same tensor, for all values of what is left open |
| `formula.py`         | one formula, as einsum would compute it                               |
| `formulas/`          | the identities that a claim may state, in words and formulas          |
| `grid_matrices.py`   | shifts and attention on a grid                                        |
| `polynomial.py`      | polynomials with rational coefficients                                |
| `elimination.py`     | rank and determinant, fraction-free                                   |
"""

from convattn_check.checking import check as check
from convattn_check.verdict import Verdict as Verdict
