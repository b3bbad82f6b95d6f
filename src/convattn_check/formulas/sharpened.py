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
    ("S.registers", "pairs"): Identity(
        "two heads for each offset, whose softmaxes run over the tokens of the bare grid and one "
        "key of value zero, compute the zero-padded convolution there, at finite scores",
        tensors(E="dqk zero", A="jdqk positive", X="ki symbols", W="dio symbols", u="k ones")
        | tensors(w="jdqk ones", t="j positive", r="- positive", g="j positive", c="j numbers"),
        (
            "V[jdqk] = w[jdqk] + t[j] r[] E[dqk]",
            "Z[jdq] = V[jdqk] u[k] + g[j] w[jdqq]",
            "B[jdqk] = A[jdqk] Z[jdq]",
            "Y[qo] = c[j] A[jdqk] X[ki] W[dio]",
            "C[qo] = E[dqk] X[ki] W[dio]",
        ),
        (("B", "V"), ("Y", "C")),
        sizes={"k": "q"},
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
    ("S.linear", "hankel"): Identity(
        "the Hankel matrix of three taps A, B and the identity has an inverse, whatever A and B",
        tensors(A="ab symbols", B="ab symbols", I="ab identity")
        | {
            name: (("i", "j"), tuple(entries.split()))
            for name, entries in {
                "u": "1 0 0 0 1 0 0 0 1",
                "e": "1 0 0 0 0 0 0 0 0",
                "f": "0 1 0 1 0 0 0 0 0",
                "g": "0 0 1 0 1 0 1 0 0",
                "p": "0 0 0 0 0 1 0 1 0",
                "q": "0 0 0 0 0 0 0 0 1",
            }.items()
        },
        (
            "H[(ia)(jb)] = e[ij] A[ab] + f[ij] B[ab] + g[ij] I[ab]",
            "C[ab] = B[ac] B[cb] - A[ab]",
            "K[(ia)(jb)] = g[ij] I[ab] - p[ij] B[ab] + q[ij] C[ab]",
            "P[(ia)(jb)] = H[(ia)(kc)] K[(kc)(jb)]",
            "U[(ia)(jb)] = u[ij] I[ab]",
        ),
        (("P", "U"),),
        sizes={"b": "a", "c": "a", "i": "3", "j": "i", "k": "i"},
    ),
    ("S.linear", "register"): Identity(
        "a recurrence that keeps the last three tokens, and loses the oldest at each step, is the "
        "causal convolution with three taps, at the fourth token as at the third",
        tensors(x="a symbols", y="a symbols", z="a symbols", w="a symbols", M="iab symbols")
        | {
            "A": (("j", "i"), ("0", "1", "0", "0", "0", "1", "0", "0", "0")),
            "n": (("i",), ("1", "0", "0")),
            "m": (("i",), ("0", "1", "0")),
            "l": (("i",), ("0", "0", "1")),
        },
        (
            "p[ia] = n[i] x[a]",
            "q[ia] = A[ji] p[ja] + n[i] y[a]",
            "r[ia] = A[ji] q[ja] + n[i] z[a]",
            "s[ia] = A[ji] r[ja] + n[i] w[a]",
            "Y[b] = r[ia] M[iab]",
            "Z[b] = s[ia] M[iab]",
            "C[b] = n[i] z[a] M[iab] + m[i] y[a] M[iab] + l[i] x[a] M[iab]",
            "D[b] = n[i] w[a] M[iab] + m[i] z[a] M[iab] + l[i] y[a] M[iab]",
        ),
        (("Y", "C"), ("Z", "D")),
        sizes={"i": "3", "j": "i"},
    ),
    ("S.causal", "fixed"): Identity(
        "two causal heads with the normalisers c + j and g + j at three queries j have one number "
        "M at a tap there only if 2 M = 0; of two with the weights x^d and y^d a tap follows from "
        "the distances after it: f(0) x y = (x + y) f(1) - f(2)",
        tensors(c="- symbols", g="- symbols", V="- symbols", W="- symbols", M="- symbols")
        | tensors(x="- symbols", y="- symbols")
        | {"j": (("j",), ("0", "1", "2")), "b": (("j",), ("1", "-2", "1"))}
        | tensors(o="j ones"),
        (
            "C[j] = c[] o[j] + j[j]",
            "G[j] = g[] o[j] + j[j]",
            "P[j] = M[] C[j] G[j] - V[] G[j] - W[] C[j]",
            "D[] = b[j] P[j]",
            "T[] = 2 M[]",
            "F[] = V[] + W[]",
            "S[] = V[] x[] + W[] y[]",
            "H[] = V[] x[] x[] + W[] y[] y[]",
            "A[] = x[] y[] F[]",
            "B[] = x[] S[] + y[] S[] - H[]",
        ),
        (("D", "T"), ("A", "B")),
        sizes={"j": "3"},
    ),
    ("S.causal", "counted"): Identity(
        "at the queries l that have all taps, causal heads whose scores know the number n of "
        "visible keys, and a uniform head, are the causal convolution, with maps that do not",
        tensors(C="qk causal", E="dqk zero", l="rq numbers", R="dq positive", v="q positive")
        | tensors(X="ki symbols", W="dio symbols", u="k ones", w="dq ones", z="q ones")
        | tensors(s="rd ones", I="rp identity", t="- numbers", c="- numbers", f="- numbers"),
        (
            "n[q] = C[qk] u[k]",
            "G[dqk] = w[dq] C[qk] + t[] n[q] E[dqk]",
            "N[dq] = R[dq] G[dqk] u[k]",
            "m[q] = v[q] n[q]",
            "U[rp] = l[rq] l[pq]",
            "S[rd] = l[rq] E[dqk] u[k]",
            "Y[ro] = c[] l[rq] R[dq] G[dqk] X[ki] W[dio] - f[] l[rq] v[q] C[qk] X[ki] W[dio]",
            "Z[ro] = l[rq] E[dqk] X[ki] W[dio]",
        ),
        (("N", "w"), ("m", "z"), ("U", "I"), ("S", "s"), ("Y", "Z")),
        sizes={"k": "q", "p": "r"},
        shifts={"E": ((-2,), (-1,), (0,))},
    ),
}
