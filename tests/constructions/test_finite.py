from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within
from constructions.rational_layers import RATIONAL, as_fractions, rational_layer
from constructions.slow_definitions import slow_conv, slow_token_maps
from roundings import gamma, roundoff
from strategies import make_case

from convattn.constructions.finite import finite_construction
from convattn.constructions.geometry import ConvolutionGeometry

LEAKS = (Fraction(1, 2), Fraction(1, 7), Fraction(99, 100))


def mixed_row(count, at, exponential):
    """Softmax of M at one key and zero at the others, or of zeros, with e^M rational."""
    if at is None:
        return [Fraction(1, count)] * count
    total = exponential + count - 1
    return [exponential / total if key == at else 1 / total for key in range(count)]


def leaky_heads(maps, uniform_weight=None, exponential=None, uniform=True):
    """T heads and the uniform one; either ε is given or e^M, and the other follows from N."""

    def heads(count):
        e = 1 + count * (1 / uniform_weight - 1) if exponential is None else exponential
        epsilon = Fraction(count) / (e + count - 1)
        assert uniform_weight is None or epsilon == uniform_weight
        parts = [
            (lambda hit, offset=offset: mixed_row(count, hit[offset], e), block / (1 - epsilon))
            for offset, block in maps.items()
        ]
        total = sum(maps.values()) * (-epsilon / (1 - epsilon))
        return [*parts, (lambda hit: mixed_row(count, None, e), total)] if uniform else parts

    return heads


def rational_case(bucket, seed=0):
    case = make_case(bucket, seed)
    maps = slow_token_maps(as_fractions(case.kernel), bucket.patch_size, dilation=bucket.dilation)
    expected = slow_conv(case.images, case.kernel, dilation=bucket.dilation)
    return case, maps, expected


@pytest.mark.parametrize("uniform_weight", LEAKS)
@pytest.mark.parametrize("bucket", RATIONAL)
def test_in_rational_numbers_the_layer_is_the_convolution(bucket, uniform_weight):
    case, maps, expected = rational_case(bucket)
    patch = bucket.patch_size
    output = rational_layer(
        case.images, patch, patch, list(maps), leaky_heads(maps, uniform_weight)
    )
    assert (output == expected).all()


@pytest.mark.parametrize("exponential", [Fraction(1, 2), Fraction(3), Fraction(1, 90), 10**9])
def test_any_m_but_zero_does_negative_ones_too(exponential):
    """e^M = 1/2 makes ε larger than one; the proof does not care."""
    bucket = RATIONAL[1]
    case, maps, expected = rational_case(bucket)
    heads = leaky_heads(maps, exponential=Fraction(exponential))
    output = rational_layer(case.images, bucket.patch_size, bucket.patch_size, list(maps), heads)
    assert (output == expected).all()


def test_m_zero_does_not():
    bucket = RATIONAL[1]
    case, maps, _ = rational_case(bucket)
    heads = leaky_heads(maps, exponential=Fraction(1))
    with pytest.raises(ZeroDivisionError):
        rational_layer(case.images, bucket.patch_size, bucket.patch_size, list(maps), heads)


def test_without_the_uniform_head_it_is_not_the_convolution():
    bucket = RATIONAL[0]
    case, maps, expected = rational_case(bucket)
    heads = leaky_heads(maps, Fraction(1, 2), uniform=False)
    output = rational_layer(case.images, (1, 1), (1, 1), list(maps), heads)
    assert (output != expected).any()


@pytest.mark.parametrize("uniform_weight", LEAKS)
@pytest.mark.parametrize("bucket", RATIONAL)
def test_on_the_bare_grid_missing_tokens_are_their_mean_in_rational_numbers(bucket, uniform_weight):
    """One axis after the other: the tokens around the grid are the mean of all, exactly."""
    case, maps, _ = rational_case(bucket)
    patch = bucket.patch_size
    output = rational_layer(
        case.images, patch, patch, list(maps), leaky_heads(maps, uniform_weight), bare=True
    )
    one_hot = rational_layer(case.images, patch, patch, list(maps), limit_heads(maps), bare=True)
    assert (output == one_hot).all()
    zero_padded = rational_layer(
        case.images, patch, patch, list(maps), leaky_heads(maps, uniform_weight)
    )
    assert (output != zero_padded).any()


def limit_heads(maps):
    """One-hot where the key exists, uniform elsewhere: what L21's heads tend to."""

    def heads(count):
        def row(at):
            return [Fraction(key == at) if at is not None else Fraction(1, count)
                    for key in range(count)]  # fmt: skip

        return [
            (lambda hit, offset=offset: row(hit[offset]), block) for offset, block in maps.items()
        ]

    return heads


@pytest.mark.parametrize("uniform_weight", LEAKS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
def test_the_maps_of_the_construction_are_the_rational_ones(uniform_weight, dtype):
    """M/(1-ε) has three roundings and one to store; the uniform map T more."""
    geometry = ConvolutionGeometry.of((3, 2), (2, 3))
    kernel = make_case(RATIONAL[1], 5).kernel
    exact = slow_token_maps(as_fractions(kernel), (2, 3))
    maps = jnp.asarray(np.stack(list(exact.values())).astype(float), dtype)
    rounded = Fraction(
        float(jnp.asarray(float(uniform_weight), jnp.promote_types(dtype, "float32")))
    )
    encoding, blocks = finite_construction(maps, geometry, float(uniform_weight))
    assert encoding.heads == geometry.heads + 1 == len(blocks)
    assert Fraction(float(encoding.uniform_weight)) == rounded
    scale = 1 / (1 - rounded)
    targets = np.stack([block * scale for block in exact.values()]).astype(float)
    uniform = (sum(exact.values()) * (-rounded * scale)).astype(float)
    if uniform_weight == Fraction(1, 2) and dtype != "bfloat16":
        assert_equal(blocks, np.stack([*targets, uniform]))
    u = roundoff("float64" if dtype == "float64" else "float32")
    stored = 2.0**-8 if dtype == "bfloat16" else u
    count = geometry.heads
    factor = (1 + gamma(count + 3, u)) * (1 + stored) - 1
    majorant = sum(abs(block) for block in exact.values()).astype(float) * float(rounded * scale)
    assert_within(blocks[:-1], targets, factor * np.abs(targets))
    assert_within(blocks[-1], uniform, factor * majorant)
