"""§3, the remark on D_h and D_out: a head's map has rank at most D_h, not D_out - D_h.

Claimed. The map of a head that is narrower than the output has a rank that is the difference of the
two widths, too low to express every convolution.
True. The rank is at most the width of the head, not that difference; the conclusion is right for
heads that are narrower than the input too, and not for wider ones.

Printed. "It is frequent in transformer-based architectures to set D_h = D_out/N_h, hence D_h <
D_out. In that case, W^(h) can be seen to be of rank D_out - D_h, which does not suffice to
express every convolutional layer with D_out channels. Nevertheless, it can be seen that any D_h
out of D_out outputs of MHSA(X) can express the output of any convolutional layer with D_h output
channels."

Verified. W^(h) = W_val^(h) W_out^(h) has rank at most min(D_in, D_h, D_out), and generic factors
reach it. So if D_h < min(D_in, D_out), K² heads with hard attention, one for each shift, miss
every kernel with a W_δ of rank above D_h. Any D_h of the D_out outputs can be those of any
convolution with D_h output channels.

Repair. At most D_h for "rank D_out - D_h". The conclusion stands where D_h < D_in too: where D_h ≥
D_in the head's map can be any D_in × D_out matrix.

Errata.
- §3, the remark on D_h | rank D_out - D_h | at most D_h

Proof. *The main point:* W^(h) factors through R^(D_h).

For the converse let C be the chosen D_h channels, and let W_out^(h) have the identity in the
columns C: the columns C of W_val^(h) W_out^(h) are W_val^(h), any matrix.

With one head for each shift, W^(h) = W_δ is forced, as the taps of a convolution are determined by
it.

If D_h ≥ D_in take W_val^(h) = (I, 0). For a generic map the rank is min(D_in, D_h), which is
D_out - D_h by chance at most. ∎
"""

import numpy as np
from flint import fmpz_mat

from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict
from convattn_ledger.evidence import certified, exact_convolution, proved


def ranks(run: Run) -> str:
    """Exact ranks of random integer factors, D_h < D_out ≤ 8."""
    cases, as_printed, reached = 100, 0, 0
    for case in range(cases):
        rng = run.rng(case)
        head_dim = int(rng.integers(1, 6))
        out = head_dim + int(rng.integers(1, 4))
        inputs = int(rng.integers(1, 9))
        value = fmpz_mat(rng.integers(-9, 10, (inputs, head_dim)).tolist())
        output = fmpz_mat(rng.integers(-9, 10, (head_dim, out)).tolist())
        rank = (value * output).rank()
        if rank > min(inputs, head_dim):
            raise EvidenceFailed(
                f"case {case}: D_in = {inputs}, D_h = {head_dim}, D_out = {out}, rank {rank}"
            )
        reached += rank == min(inputs, head_dim)
        as_printed += rank == out - head_dim
    if not (reached > cases // 2 and as_printed < cases // 2):
        raise EvidenceFailed(f"rank min(D_in, D_h) {reached} times, D_out - D_h {as_printed} times")
    return (
        f"{cases} products, none of rank above D_h; {reached} of rank min(D_in, D_h), "
        f"{as_printed} of rank D_out - D_h"
    )


def chosen_channels(run: Run) -> str:
    """Any D_h outputs can be those of any kernel; more than D_h cannot, in exact integers."""
    cases = 3 if run.quick else 10
    for case in range(cases):
        rng = run.rng(case)
        head_dim, out, inputs = 2, 5, 4
        channels = np.sort(rng.choice(out, head_dim, replace=False))
        kernel, image = (
            rng.integers(-9, 10, (3, 3, inputs, head_dim)),
            rng.integers(0, 256, (1, 4, 5, inputs)),
        )
        output = rng.integers(-9, 10, (3, 3, head_dim, out))
        output[..., channels] = np.eye(head_dim, dtype=int)
        maps = kernel @ output
        selected = exact_convolution(image, maps)[..., channels]
        if (selected != exact_convolution(image, kernel)).any():
            raise EvidenceFailed(f"case {case}: channels {channels} are not those of the kernel")
        full = np.concatenate([np.eye(3, dtype=int), rng.integers(-9, 10, (1, 3))])  # rank 3 > D_h
        if fmpz_mat(maps[1, 1].tolist()).rank() >= fmpz_mat(full.tolist()).rank():
            raise EvidenceFailed(f"case {case}: a map through D_h = 2 reached rank 3")
    return f"{cases} kernels with D_h = 2 of 5 channels equal; rank 3 is out of reach"


CLAIM = Claim(
    id="C20.rank",
    source="Cordonnier, Loukas, Jaggi 2020, §3, remark about D_h and D_out",
    verdict=Verdict.REFUTED,
    kinds=(Kind.REFUTATION,),
    evidence=(
        proved(
            "cordonnier2020/rank.v",
            covers="for one head's matrix: the rank bound, that it is reached, that it is not "
            "D_out - D_h if D_out > 2 D_h, that a matrix of rank above D_h is none, and any "
            "D_h columns; not: layers and convolutions, generic factors",
        ),
        certified("C20.rank"),
        Evidence("ranks of random factors", Level.TESTED, ranks),
        Evidence("D_h of D_out channels", Level.TESTED, chosen_channels),
    ),
)
