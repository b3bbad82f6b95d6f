"""Remarks that no theorem is about: inductive bias, the number of operations, encodings in use.

Claimed. Convolution is the right bias for the first layers, Gaussian attention could take far fewer
operations, and Table 3 lists the encodings in use.
True. With the quadratic encoding, 16 × 16 tokens take an eighth of the multiplications, without
loss; the first rests on training runs not repeated here, and the table was not checked.

Printed. "Our results seem to suggest that localized convolution is the right inductive bias for the
first few layers of an image classifying network" (Section 1). "Our implementation could be
optimized to exploit the locality of Gaussian attention probabilities and reduce significantly the
number of FLOPS" (Section 4.2). Table 3 lists "Types of positional encoding used by transformers
models applied to text [...] and images".

Verified. The second is true, without any loss: scores of a quadratic encoding are a sum over the
axes, so attention is a product over them (S.separable), and a head on n × n tokens takes 2n³
multiplications for each feature in place of n⁴: on their 16 × 16 tokens an eighth. Where the
weights have underflowed, K² shifts do. The first is a suggestion from what heads learned to look
at, in runs that are NOT RUN here (C20.quadratic). Table 3 is a list of other papers' choices and
was not compared with them.

Nothing to repair.

Proof. A_q = a_q1 ⊗ a_q2, and (a_q1 ⊗ a_q2) X is formed axis by axis: n rows for each of n columns,
and again. ∎
"""

from functools import partial

import jax
import jax.numpy as jnp

from convattn.constructions.conversion import conv_to_attention
from convattn.fast.application import apply_attention
from convattn_ledger import Claim, Evidence, Kind, Level, Run, Verdict, require


def operations(run: Run) -> str:
    """XLA's count of both programs, nine quadratic heads with value maps of 8 features."""
    summary = []
    for tokens in (16, 32):
        kernel = run.rng(tokens).normal(size=(3, 3, 8, 8))
        layer = conv_to_attention(jnp.asarray(kernel, jnp.float32), encoding="quadratic")
        images = jax.ShapeDtypeStruct((1, tokens, tokens, 8), jnp.float32)
        counts = [
            jax.jit(partial(apply_attention, backend=backend))
            .lower(layer, images)
            .compile()
            .cost_analysis()["flops"]
            for backend in ("dense", "separable")
        ]
        ratio = counts[0] / counts[1]
        require(
            ratio > tokens / 8, f"{tokens} tokens a side: dense takes {ratio:.1f} times as many"
        )
        summary.append(f"{tokens} tokens a side: {ratio:.1f} times fewer")
    return "; ".join(summary)


CLAIM = Claim(
    id="C20.remarks",
    source="Cordonnier, Loukas and Jaggi 2020, Sections 1 and 4.2, Table 3",
    verdict=Verdict.HOLDS,
    kinds=(Kind.IDENTITY,),
    evidence=(Evidence("operations", Level.TESTED, operations),),
)
