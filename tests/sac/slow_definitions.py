"""B19's equations, written out in 1-based loops over Python integers, key-first as printed."""

import math

import numpy as np


def printed_convolution(x, h, bracket=math.ceil):
    """Definition 1: c_ij = Σ_kl x_(i-[n/2]+k, j-[m/2]+l) · h_kl, zero outside."""
    N, M, _ = x.shape
    n, m, _ = h.shape
    c = np.zeros((N, M), x.dtype)
    for i in range(1, N + 1):
        for j in range(1, M + 1):
            for k in range(1, n + 1):
                for l in range(1, m + 1):  # noqa: E741
                    a, b = i - bracket(n / 2) + k, j - bracket(m / 2) + l
                    if 1 <= a <= N and 1 <= b <= M:
                        c[i - 1, j - 1] += x[a - 1, b - 1] @ h[k - 1, l - 1]
    return c


def printed_star(x, H):
    """Definition 2 for one filter index: H is [F, n, m, d]."""
    return np.stack([printed_convolution(x, h) for h in H], axis=-1)


def as_printed(filters):
    """One head's filters [n, m, in, features] as the paper has them, [features, n, m, in]."""
    return np.moveaxis(filters, -1, 0)


def printed_products(q, k):
    """α_rtij = k_rt · q_ij (eq. 2)."""
    return np.einsum("rte,ije->rtij", k, q)


def printed_bias(b, shape):
    """b_(|i-r|, |j-t|), key-first."""
    N, M = shape
    out = np.zeros((N, M, N, M), b.dtype)
    for r in range(N):
        for t in range(M):
            for i in range(N):
                for j in range(M):
                    out[r, t, i, j] = b[abs(i - r), abs(j - t)]
    return out


def query_first(a):
    """[r, t, i, j] as a matrix of queries and keys."""
    keys = a.shape[0] * a.shape[1]
    return a.reshape(keys, -1).T
