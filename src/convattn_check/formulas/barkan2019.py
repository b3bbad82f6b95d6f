"""The identities of Barkan's claims. Tokens are indices, not columns: x_i[d] stands in X[di]."""

from convattn_check.formulas.identity_type import Identity, tensors

# l and r select the pixels of the two images among those of both: zeros and ones, all distinct.
HALVES = (
    "A[ab] = l[aq] l[bq]",
    "B[ab] = r[aq] r[bq]",
    "C[ab] = l[aq] r[bq]",
    "D[ab] = A[ab] - A[ab]",
    "u[aq] = l[aq] l[aq]",
    "v[aq] = r[aq] r[aq]",
)
DISJOINT = (("A", "I"), ("B", "I"), ("C", "D"), ("u", "l"), ("v", "r"))

BARKAN = {
    ("B19.lemma1", "one_by_one"): Identity(
        "WX is the convolution with 1 x 1 filters if [1/2] is the ceiling; with the floor, 0, the "
        "filters would read the pixel one further along both axes",
        tensors(W="fd symbols", X="dj symbols", E="ljk zero", G="mjk zero"),
        ("Y[fj] = W[fd] X[dj]", "C[fj] = E[ljk] X[dk] W[fd]", "F[fj] = G[mjk] X[dk] W[fd]"),
        (("Y", "C"),),
        (("Y", "F"),),
        sizes={"l": "1", "m": "1", "k": "j"},
        shifts={"E": ((0, 0),), "G": ((1, 1),)},
        layout=(("one grid", "E", "G"),),
    ),
    ("B19.softmax", "row_sums"): Identity(
        "where every row of A sums to one, V Aᵀ leaves a constant V as it is",
        tensors(A="ij positive", o="j ones", u="i ones", v="d symbols"),
        ("R[i] = A[ij] o[j]", "Y[di] = v[d] o[j] A[ij]", "V[di] = v[d] u[i]"),
        (("R", "u"), ("Y", "V")),
    ),
    ("B19.softmax", "column_sums"): Identity(
        "where every column of A sums to one, V Aᵀ may change a constant V: its columns are no "
        "convex combinations of V's then",
        tensors(A="ij positive", o="j ones", u="i ones", v="d symbols"),
        ("C[j] = A[ij] u[i]", "Y[di] = v[d] o[j] A[ij]", "V[di] = v[d] u[i]"),
        (("C", "o"),),
        (("Y", "V"),),
        sizes={"j": "i"},
    ),
    ("B19.sa2d", "heads"): Identity(
        "concatenated heads and a 1 x 1 convolution are a sum over the heads",
        tensors(a="cqk symbols", v="cko symbols", H="fe symbols"),
        (
            "Y[cqo] = a[cqk] v[cko]",
            "G[q(co)] = Y[cqo]",
            "R[qf] = G[qe] H[fe]",
            "Z[qf] = a[cqk] v[cko] H[f(co)]",
        ),
        (("R", "Z"),),
        sizes={"e": "co"},
    ),
    ("B19.sa2d", "even"): Identity(
        "attention rows that are even in the shift make kernels that are even in the shift",
        tensors(b="hg symbols", v="hio symbols")
        | {
            "J": (("g", "d"), ("0", "1", "0", "1", "0", "1")),
            "R": (("d", "e"), ("0", "0", "1", "0", "1", "0", "1", "0", "0")),
        },
        (
            "a[hd] = b[hg] J[gd]",
            "F[dio] = a[hd] v[hio]",
            "M[eio] = R[de] F[dio]",
        ),
        (("M", "F"),),
        sizes={"e": "d"},
    ),
    ("B19.sac", "limit"): Identity(
        "a head that attends to its own pixel alone, with n x m value filters, is any convolution",
        tensors(N="aqk nearest", E="dqk zero", X="ki symbols", W="dio symbols"),
        ("C[qo] = E[dqk] X[ki] W[dio]", "V[ko] = C[ko]", "Y[qo] = N[aqk] V[ko]"),
        (("Y", "C"),),
        sizes={"a": "1", "k": "q"},
        layout=(("one grid", "N", "E"),),
    ),
    ("B19.sac", "two_heads"): Identity(
        "with a second, uniform head the same holds at finite scores",
        tensors(L="aqk leaky", E="dqk zero", X="ki symbols", W="dio symbols", o="q ones")
        | tensors(c="- numbers", f="- numbers", u="k ones"),
        (
            "V[ko] = E[dkj] X[ji] W[dio]",
            "Y[qo] = c[] L[aqk] V[ko] - f[] o[q] u[k] V[ko]",
        ),
        (("Y", "V"),),
        sizes={"a": "1", "k": "q", "j": "q"},
        layout=(("one grid", "L", "E"),),
    ),
    ("B19.msac", "scales"): Identity(
        "concatenated scales and a 1 x 1 convolution are a sum over the scales",
        tensors(Y="lqo symbols", H="fe symbols"),
        ("G[q(lo)] = Y[lqo]", "R[qf] = G[qe] H[fe]", "Z[qf] = Y[lqo] H[f(lo)]"),
        (("R", "Z"),),
        sizes={"e": "lo"},
    ),
    ("B19.language", "causal"): Identity(
        "under a causal mask filters that read no later word keep the output causal; centred "
        "filters do not",
        tensors(m="qk causal", s="qk symbols", E="dkj zero", F="lkj zero")
        | tensors(W="dio symbols", U="lio symbols"),
        (
            "P[qjio] = m[qk] s[qk] E[dkj] W[dio]",
            "Q[qjio] = m[qj] P[qjio]",
            "R[qjio] = m[qk] s[qk] F[lkj] U[lio]",
            "S[qjio] = m[qj] R[qjio]",
        ),
        (("P", "Q"),),
        (("R", "S"),),
        sizes={"k": "q", "j": "q"},
        layout=(("one grid", "E", "F"), ("centred", "F")),
    ),
    ("B19.cross", "seam"): Identity(
        "side by side, filters read across the seam; within an image they read what they should",
        tensors(J="dqk zero", S="dab zero", l="aq numbers", r="aq numbers", I="ab identity"),
        (
            *HALVES,
            "P[dab] = l[aq] J[dqk] l[bk]",
            "T[dab] = r[aq] J[dqk] r[bk]",
            "Q[dab] = l[aq] J[dqk] r[bk]",
            "O[dab] = P[dab] - P[dab]",
        ),
        (*DISJOINT, ("P", "S"), ("T", "S")),
        (("Q", "O"),),
        sizes={"k": "q", "b": "a"},
        layout=(("adjacent", "J", "S", "l", "r"),),
    ),
    ("B19.cross", "gap"): Identity(
        "with a gap as wide as the filters reach no filter reads across",
        tensors(J="dqk zero", S="dab zero", l="aq numbers", r="aq numbers", I="ab identity"),
        (
            *HALVES,
            "P[dab] = l[aq] J[dqk] l[bk]",
            "T[dab] = r[aq] J[dqk] r[bk]",
            "Q[dab] = l[aq] J[dqk] r[bk]",
            "R[dab] = r[aq] J[dqk] l[bk]",
            "O[dab] = P[dab] - P[dab]",
        ),
        (*DISJOINT, ("P", "S"), ("T", "S"), ("Q", "O"), ("R", "O")),
        sizes={"k": "q", "b": "a"},
        layout=(("apart", "J", "S", "l", "r"),),
    ),
}
