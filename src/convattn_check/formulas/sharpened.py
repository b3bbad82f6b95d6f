"""The identities of this project's own claims."""

from convattn_check.formulas.identity_type import Identity, tensors

SHARPENED = {
    ("S.separable", "separable"): Identity(
        "softmax of a row score plus a column score over a rectangle is the product of the two "
        "softmaxes: with f = e^row and g = e^column, f g / ΣΣ f g = (f / Σ f)(g / Σ g)",
        tensors(f="i symbols", g="j symbols"),
        (
            "W[ij] = f[i] g[j]",
            "Z[] = W[ij]",
            "F[] = f[i]",
            "G[] = g[j]",
            "H[] = F[] G[]",
            "P[ij] = f[i] g[j] Z[]",
            "Q[ij] = W[ij] F[] G[]",
        ),
        (("Z", "H"), ("P", "Q")),
    ),
    ("S.separable", "layer"): Identity(
        "the whole layer: rows mixed first, then columns, and the normalisers are a product",
        tensors(f="qi symbols", g="rj symbols", X="ijc symbols"),
        (
            "N[qrc] = f[qi] g[rj] X[ijc]",
            "U[qjc] = f[qi] X[ijc]",
            "V[qrc] = g[rj] U[qjc]",
            "D[qr] = f[qi] g[rj]",
            "a[q] = f[qi]",
            "b[r] = g[rj]",
            "B[qr] = a[q] b[r]",
        ),
        (("N", "V"), ("D", "B")),
    ),
    ("S.boundary", "edge"): Identity(
        "on the bare grid the quadratic heads compute, in the limit, the convolution with "
        "edge-replicate padding",
        tensors(N="dqk nearest", E="dqk edge", X="ki symbols", W="dio symbols"),
        ("Y[qo] = N[dqk] X[ki] W[dio]", "C[qo] = E[dqk] X[ki] W[dio]"),
        (("N", "E"), ("Y", "C")),
        sizes={"k": "q"},
        layout=(("alike", "N", "E"),),
    ),
    ("S.boundary", "mean"): Identity(
        "on the bare grid leaky one-hot biases and a uniform head compute, at finite scores, the "
        "convolution with mean padding",
        tensors(L="dqk leaky", M="dqk mean", X="ki symbols", W="dio symbols", o="q ones")
        | tensors(c="- numbers", f="- numbers", u="k ones"),
        (
            "Y[qo] = c[] L[dqk] X[ki] W[dio] - f[] o[q] u[k] X[ki] W[dio]",
            "C[qo] = M[dqk] X[ki] W[dio]",
        ),
        (("Y", "C"),),
        sizes={"k": "q"},
        layout=(("alike", "L", "M"),),
    ),
    ("S.padding", "constant_sums"): Identity(
        "where the taps inside the grid have the same sum at every query, finite heads and a "
        "uniform head compute the zero-padded convolution on the bare grid",
        tensors(E="dqk zero", L="dqk leaky", W="d nonzero", o="q ones", u="k ones")
        | tensors(X="k symbols", t="- numbers", c="- numbers", f="- numbers"),
        (
            "T[q] = E[dqk] u[k] W[d]",
            "K[q] = t[] o[q]",
            "Y[q] = c[] L[dqk] W[d] X[k] - f[] o[q] u[k] X[k]",
            "C[q] = E[dqk] W[d] X[k]",
        ),
        (("T", "K"), ("Y", "C")),
        sizes={"k": "q"},
        layout=(("alike", "E", "L"),),
    ),
    ("S.lemma3", "shared_map"): Identity(
        "where one map P makes the shift matrices of the heads' attention matrices at the queries "
        "that l selects, the heads with the values P W are the convolution there, for every W",
        tensors(A="hqk positive", P="dh numbers", E="drk zero", l="qr numbers", o="k ones")
        | tensors(w="hq ones", X="ki symbols", W="dio symbols", I="qp identity"),
        (
            "U[qp] = l[qr] l[pr]",
            "v[qr] = l[qr] l[qr]",
            "R[hq] = A[hqk] o[k]",
            "S[dqk] = P[dh] A[hqk]",
            "T[dqk] = l[qr] E[drk]",
            "V[hio] = P[dh] W[dio]",
            "Y[qo] = A[hqk] X[ki] V[hio]",
            "C[qo] = T[dqk] X[ki] W[dio]",
        ),
        (("U", "I"), ("v", "l"), ("R", "w"), ("S", "T"), ("Y", "C")),
        sizes={"r": "k", "p": "q"},
        layout=(("read", "E", "T"),),
    ),
}
