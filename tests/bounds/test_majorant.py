"""G = Σ_h g_h A_h |X| Σ_δ |C_hδ||M_δ| + |b|, against fractions, and what it must not depend on."""

from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
from strategies import CONVERSION_BUCKETS, make_case

import convattn as ca
from convattn.bounds.majorant import majorant_of
from convattn.constructions.scalar import lagrange_coefficients, scalar_bases

# The derivation allows G to be evaluated to 2⁻²⁰; float64 is far better than that.
SLACK = 2.0**-20


def exact_terms(encoding, uniform_weight, reach, keys):
    """For each head: its gain times its row at a query, by shift; and its |C_hδ|."""
    offsets = range(-reach, reach + 1)
    count = len(offsets)
    if encoding == "bias":
        uniform = Fraction(1, keys)
        for index in range(count):
            row = {
                d: uniform_weight * uniform + (1 - uniform_weight) * (d == offsets[index])
                for d in offsets
            }
            parts = [
                (Fraction(1) / (1 - uniform_weight)) * (index == other) for other in range(count)
            ]
            yield row, uniform_weight * uniform, parts
        yield (
            dict.fromkeys(offsets, uniform),
            uniform,
            [uniform_weight / (1 - uniform_weight)] * count,
        )
    else:
        for power, coefficients in enumerate(lagrange_coefficients(count, True)):
            row = {d: Fraction(t**power) for d, t in zip(offsets, scalar_bases(count), strict=True)}
            yield row, Fraction(1), [abs(c) for c in coefficients]


def exact_majorant(encoding, uniform_weight, kernel, bias, image):
    """The same for a one-channel sequence, P = 1, by the definition."""
    reach, length = len(kernel) // 2, len(image)
    keys = length + 2 * reach
    padded = [0] * reach + [abs(int(x)) for x in image] + [0] * reach
    totals = []
    for query in range(length):
        total = Fraction(abs(int(bias)))
        for row, elsewhere, parts in exact_terms(encoding, uniform_weight, reach, keys):
            mixed = sum(
                row.get(key - query - reach, elsewhere) * padded[key] for key in range(keys)
            )
            total += mixed * sum(c * abs(int(w)) for c, w in zip(parts, kernel, strict=True))
        totals.append(total)
    return totals


@pytest.mark.slow
@pytest.mark.parametrize(
    ("encoding", "uniform_weight"), [("bias", 0.5), ("bias", 0.125), ("bias", 0.1), ("scalar", 0.5)]
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_majorant_is_that_of_the_definition(encoding, uniform_weight, dtype):
    kernel, bias, image = [3, -1, -2], 7, [5, -3, 0, 2, 8]
    weights = jnp.array(kernel, dtype).reshape(3, 1, 1)
    layer = ca.conv_to_attention(
        weights, jnp.array([bias], dtype), encoding=encoding, uniform_weight=uniform_weight
    )
    images = jnp.array(image, dtype).reshape(1, 5, 1)
    computed = majorant_of(layer, weights, jnp.array([bias]), images).reshape(-1)
    stored = Fraction(float(jnp.asarray(uniform_weight, dtype)))
    for value, exact in zip(
        computed, exact_majorant(encoding, stored, kernel, bias, image), strict=True
    ):
        assert abs(Fraction(float(value)) - exact) <= SLACK * exact


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["bias", "scalar"])
@pytest.mark.parametrize("bucket", [CONVERSION_BUCKETS[2], CONVERSION_BUCKETS[3]])
def test_signs_cannot_cancel(encoding, bucket):
    """With |W|, |b| and |X| it is the same, and it is at least |conv|."""
    case = make_case(bucket, 3, "float64")
    options = {"patch_size": bucket.patch_size, "encoding": encoding, **bucket.options}
    images, kernel, bias = case.cast()
    layer = ca.conv_to_attention(kernel, bias, **options)
    majorant = majorant_of(layer, kernel, bias, images, groups=bucket.groups)
    magnitudes = (abs(kernel), abs(bias), abs(images))
    same = majorant_of(layer, *magnitudes, groups=bucket.groups)
    np.testing.assert_array_equal(majorant, same)
    largest = ca.conv(abs(case.images), abs(case.kernel), abs(case.bias), **bucket.options)
    assert (majorant * (1 + SLACK) >= np.asarray(largest)).all()


def test_another_kernel_or_another_encoding_is_refused():
    kernel = jnp.ones((3, 1, 1))
    layer = ca.conv_to_attention(kernel)
    with pytest.raises(ValueError, match=r"reads the offsets .* pass the kernel that it was made"):
        majorant_of(layer, jnp.ones((5, 1, 1)), None, jnp.ones((1, 4, 1)))
    for encoding in ("bias", "scalar", "quadratic"):
        limit = ca.conv_to_attention(kernel, encoding=encoding, form="limit")
        with pytest.raises(ValueError, match="only for the exact forms"):
            majorant_of(limit, kernel, None, jnp.ones((1, 4, 1)))
