"""The identities of Andreoli's claims.

His A_k has the entry (m, n) for input m and output n; a grid's matrices (grid_matrices.py) have
queries before keys, so they are read as E[knm], and his shift d, output minus input, is δ = -d.
"""

from convattn_check.formulas.identity_type import Identity, tensors

CONVOLVED = "Y[nq] = A[kmn] X[mp] T[kpq]"

ANDREOLI = {
    ("A19.mixed", "rank"): Identity(
        "rank decompositions of every a_k and b_k give one of their mixed product, with as many "
        "terms as the sum of the products of their ranks",
        tensors(u="krs symbols", v="krt symbols", f="kgx symbols", h="kgy symbols")
        | tensors(i="g ones", j="r ones"),
        (
            "a[kst] = u[krs] v[krt]",
            "b[kxy] = f[kgx] h[kgy]",
            "P[stxy] = a[kst] b[kxy]",
            "U[(krg)s] = u[krs] i[g]",
            "V[(krg)t] = v[krt] i[g]",
            "F[(krg)x] = f[kgx] j[r]",
            "H[(krg)y] = h[kgy] j[r]",
            "Q[stxy] = U[es] V[et] F[ex] H[ey]",
        ),
        (("P", "Q"),),
        sizes={"e": "krg"},
    ),
    ("A19.prop1", "inverse"): Identity(
        "with the dual family c, the parameter of a tensor F is R = F c, and it is the only one",
        tensors(a="kst numbers", c="kst numbers", I="kl identity")
        | tensors(T="kx symbols", F="stx symbols"),
        (
            "D[kl] = a[kst] c[lst]",
            "P[stx] = a[kst] T[kx]",
            "U[kx] = P[stx] c[kst]",
            "R[kx] = F[stx] c[kst]",
            "Q[stx] = a[kst] R[kx]",
        ),
        (("D", "I"), ("U", "T"), ("Q", "F")),
        sizes={"k": "st", "l": "st"},
    ),
    ("A19.prop2", "linear_map"): Identity(
        "the convolution of basis A and parameter T is the linear map of the mixed product A∘T",
        tensors(A="kmn symbols", X="mp symbols", T="kpq symbols"),
        (CONVOLVED, "P[mnpq] = A[kmn] T[kpq]", "Z[nq] = X[mp] P[mnpq]"),
        (("Y", "Z"),),
    ),
    ("A19.prop2", "every_map"): Identity(
        "with the M·N unit matrices as basis every linear map F is a convolution",
        tensors(I="kl identity", X="mp symbols", F="mnpq symbols"),
        (
            "A[kmn] = I[k(mn)]",
            "T[(mn)pq] = F[mnpq]",
            CONVOLVED,
            "Z[nq] = X[mp] F[mnpq]",
        ),
        (("Y", "Z"),),
        sizes={"k": "mn", "l": "mn"},
    ),
    ("A19.prop2", "one_by_one"): Identity(
        "with the identity matrix as the whole basis every entry is mapped by itself",
        tensors(I="mn identity", X="mp symbols", T="kpq symbols", o="k ones"),
        ("A[kmn] = o[k] I[mn]", CONVOLVED, "Z[nq] = X[np] T[kpq]"),
        (("Y", "Z"),),
        sizes={"k": "1", "n": "m"},
    ),
    ("A19.prop3", "composition"): Identity(
        "the composition of two convolutions is the one of the products of bases and parameters",
        tensors(A="kmn symbols", T="kpq symbols", B="lno symbols", S="lqr symbols")
        | tensors(X="mp symbols"),
        (
            CONVOLVED,
            "Z[or] = B[lno] Y[nq] S[lqr]",
            "C[(kl)mo] = A[kmn] B[lno]",
            "R[(kl)pr] = T[kpq] S[lqr]",
            "V[or] = C[hmo] X[mp] R[hpr]",
        ),
        (("Z", "V"),),
        sizes={"h": "kl"},
    ),
    ("A19.prop3", "bare_grid_composite"): Identity(
        "on a bare grid of two nodes A_1 A_-1 = diag(1, 0), which is not constant along diagonals",
        tensors(F="dnm zero", B="eon zero") | {"G": (("m", "o"), ("1", "0", "0", "0"))},
        ("C[mo] = F[dnm] B[eon]",),
        (("C", "G"),),
        sizes={"d": "1", "e": "1"},
    ),
    ("A19.reductions", "grouped"): Identity(
        "a block-diagonal parameter convolves each group of channels by itself",
        tensors(A="kmn symbols", X="mw symbols", B="kgpq symbols", I="gh identity"),
        (
            "T[k(gp)(hq)] = I[gh] B[kgpq]",
            "Y[nz] = A[kmn] X[mw] T[kwz]",
            "Z[n(gq)] = A[kmn] X[m(gp)] B[kgpq]",
        ),
        (("Y", "Z"),),
        sizes={"h": "g", "w": "gp", "z": "gq"},
    ),
    ("A19.reductions", "depthwise"): Identity(
        "a depthwise-separable parameter mixes the entries channel by channel, then the channels",
        tensors(A="kmn symbols", X="mp symbols", U="kp symbols", V="pq symbols"),
        (
            "T[kpq] = U[kp] V[pq]",
            CONVOLVED,
            "D[np] = A[kmn] X[mp] U[kp]",
            "Z[nq] = D[np] V[pq]",
        ),
        (("Y", "Z"),),
    ),
    ("A19.reductions", "controlled"): Identity(
        "a controlled-separable parameter is a convolution of size H with combined basis matrices",
        tensors(A="kmn symbols", X="mp symbols", G="hk symbols", C="hpq symbols"),
        (
            "T[kpq] = G[hk] C[hpq]",
            CONVOLVED,
            "B[hmn] = G[hk] A[kmn]",
            "Z[nq] = B[hmn] X[mp] C[hpq]",
        ),
        (("Y", "Z"),),
    ),
    ("A19.orders", "orders"): Identity(
        "the three orders of contraction give the same",
        tensors(A="kmn symbols", X="bmp symbols", T="kpq symbols"),
        (
            "R[bkmq] = X[bmp] T[kpq]",
            "Y[bnq] = A[kmn] R[bkmq]",
            "S[bknp] = A[kmn] X[bmp]",
            "Z[bnq] = S[bknp] T[kpq]",
            "P[mnpq] = A[kmn] T[kpq]",
            "V[bnq] = X[bmp] P[mnpq]",
        ),
        (("Y", "Z"), ("Z", "V")),
    ),
    ("A19.grid", "cuboid"): Identity(
        "the shift matrices of a right cuboid are the products of those of its axes",
        tensors(U="iab zero", V="jcd zero", E="kqm zero"),
        ("C[(ij)(ac)(bd)] = U[iab] V[jcd]",),
        (("C", "E"),),
        sizes={"k": "ij", "q": "ac", "m": "bd", "b": "a", "d": "c"},
        layout=(("product", "U", "V", "E"),),
    ),
    ("A19.grid", "stride"): Identity(
        "a strided basis, with fewer outputs than inputs, samples the outputs of the plain one",
        tensors(R="zrq zero", E="kqm zero", G="krm zero"),
        ("C[krm] = R[zrq] E[kqm]",),
        (("C", "G"),),
        sizes={"z": "1", "m": "q"},
        fewer=(("r", "q"),),
        layout=(("sampled", "R", "E", "G"), ("read", "G")),
    ),
    ("A19.graph", "chebyshev"): Identity(
        "the Chebyshev recurrence of any matrix gives 2 T_2² = T_4 + T_0, as for numbers",
        tensors(L="ab symbols", I="ab identity"),
        (
            "P[ac] = L[ab] L[bc]",
            "D[ab] = 2 P[ab] - I[ab]",
            "Q[ac] = L[ab] D[bc]",
            "E[ab] = 2 Q[ab] - L[ab]",
            "S[ac] = L[ab] E[bc]",
            "F[ab] = 2 S[ab] - D[ab]",
            "R[ac] = D[ab] D[bc]",
            "U[ab] = 2 R[ab]",
            "V[ab] = F[ab] + I[ab]",
        ),
        (("U", "V"),),
        sizes={"b": "a", "c": "a"},
    ),
    ("A19.graph", "gcn"): Identity(
        "on a graph whose nodes have two neighbours each, (A + I)/3 is the matrix of the graph "
        "convolution network, and it is not the normalised Laplacian I - A/2",
        tensors(A="ab numbers", G="ab numbers", L="ab numbers", I="ab identity", o="b ones")
        | tensors(t="a ones"),
        (
            "B[ab] = A[ab] A[ab]",
            "T[ab] = A[ba]",
            "C[a] = A[aa]",
            "D[a] = A[ab] o[b]",
            "E[a] = 2 t[a]",
            "Z[a] = E[a] - 2 t[a]",
            "P[ab] = 3 G[ab]",
            "Q[ab] = A[ab] + I[ab]",
            "R[ab] = 2 I[ab] - 2 L[ab]",
        ),
        (("A", "B"), ("A", "T"), ("C", "Z"), ("D", "E"), ("P", "Q"), ("R", "A")),
        (("G", "L"),),
        sizes={"b": "a"},
    ),
    ("A19.attention", "masking"): Identity(
        "masked scores get weight zero, and a constant added to a column of scores changes nothing",
        tensors(h="mn mask", e="mn symbols", c="n symbols"),
        (
            "W[mn] = h[mn] e[mn]",
            "M[mn] = h[mn] W[mn]",
            "Z[n] = W[mn]",
            "K[mn] = W[mn] c[n]",
            "J[n] = K[mn]",
            "L[mn] = K[mn] Z[n]",
            "R[mn] = W[mn] J[n]",
        ),
        (("W", "M"), ("L", "R")),
    ),
    ("A19.biaffine", "forms"): Identity(
        "the matrix form of bi-affine attention and its entries agree",
        tensors(x="mp symbols", y="nq symbols", L="pq symbols", u="p symbols", v="q symbols")
        | tensors(c="- symbols", w="m ones", o="n ones"),
        (
            "F[mn] = L[pq] x[mp] y[nq] + u[p] x[mp] o[n] + v[q] y[nq] w[m] + c[] w[m] o[n]",
            "B[mq] = x[mp] L[pq]",
            "a[m] = x[mp] u[p]",
            "b[n] = y[nq] v[q]",
            "G[mn] = B[mq] y[nq] + a[m] o[n] + w[m] b[n] + c[] w[m] o[n]",
        ),
        (("F", "G"),),
    ),
    ("A19.gat", "redundant"): Identity(
        "without the leaky ReLU the term of ν drops out of the column softmax: "
        "e_m f_n / Σ e_m f_n = e_m / Σ e_m",
        tensors(e="m symbols", f="n symbols"),
        (
            "W[mn] = e[m] f[n]",
            "Z[n] = W[mn]",
            "S[] = e[m]",
            "P[mn] = W[mn] S[]",
            "Q[mn] = e[m] Z[n]",
        ),
        (("P", "Q"),),
    ),
    ("A19.transformer", "key_query"): Identity(
        "scores of key and query maps are bi-linear with the product of the two maps",
        tensors(x="mp symbols", y="nq symbols", U="kpd symbols", V="kqd symbols"),
        (
            "L[kpq] = U[kpd] V[kqd]",
            "S[kmn] = x[mp] L[kpq] y[nq]",
            "K[kmd] = x[mp] U[kpd]",
            "Q[knd] = y[nq] V[kqd]",
            "R[kmn] = K[kmd] Q[knd]",
        ),
        (("S", "R"),),
    ),
    ("A19.transformer", "output"): Identity(
        "concatenated heads and an output map are the convolution with the products of the maps",
        tensors(A="kmn symbols", X="mp symbols", V="kpd symbols", O="qe symbols"),
        (
            "H[nkd] = A[kmn] X[mp] V[kpd]",
            "C[n(kd)] = H[nkd]",
            "Y[nq] = C[ne] O[qe]",
            "T[kpq] = V[kpd] O[q(kd)]",
            "Z[nq] = A[kmn] X[mp] T[kpq]",
        ),
        (("Y", "Z"),),
        sizes={"e": "kd"},
    ),
    ("A19.shiftheads", "sum"): Identity(
        "shift matrices beside attention matrices in one basis: the sum of two convolutions",
        tensors(A="kmn symbols", X="mp symbols", T="kpq symbols", S="lpq symbols")
        | tensors(E="lnm zero", J="hk numbers", K="hl numbers", I="hg identity"),
        (
            "D[hg] = J[hk] J[gk] + K[hl] K[gl]",
            "C[hmn] = J[hk] A[kmn] + K[hl] E[lnm]",
            "R[hpq] = J[hk] T[kpq] + K[hl] S[lpq]",
            "Y[nq] = C[hmn] X[mp] R[hpq]",
            "Z[nq] = A[kmn] X[mp] T[kpq] + E[lnm] X[mp] S[lpq]",
        ),
        (("D", "I"), ("Y", "Z")),
        sizes={"g": "h"},
        layout=(("read", "E"),),
    ),
}
