"""What counts as an array: nothing loses bits silently, and nonsense is named."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal

from convattn.operators.arrays import accumulation_dtype, as_array, require_finite


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (np.arange(3, dtype=np.uint8), "uint8"),
        (np.arange(3, dtype=np.float64), "float64"),
        (np.arange(3, dtype=np.int64), "int64"),
        (np.arange(3, dtype=np.float16), "float16"),
        (jnp.arange(3, dtype="bfloat16"), "bfloat16"),
        (jnp.arange(3).astype("complex64"), "complex64"),
    ],
)
def test_arrays_keep_their_dtype(value, dtype):
    out = as_array(value, "images")
    assert isinstance(out, jax.Array)
    assert_dtype(out, dtype)


@pytest.mark.parametrize(
    "value",
    [
        *(None, "abc", {}, object(), [[1], [1, 2]], [1, None], 2**70, np.array(["a"])),
        *(np.array([None]), np.zeros(2, [("a", int)])),
    ],
)
def test_what_is_no_array_is_refused_by_name(value):
    kind = type(value).__name__
    with pytest.raises(ValueError, match=rf"^images is {kind}, which is not an array of numbers"):
        as_array(value, "images")


@pytest.mark.parametrize("value", [True, [True, False], np.array([True]), jnp.array([False])])
def test_truth_values_are_refused(value):
    with pytest.raises(ValueError, match=r"images\.dtype=bool, but expected numbers; cast it"):
        as_array(value, "images")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (np.ones(2), r"images\.dtype=float64, but 64-bit types are off"),
        (np.float64(1), r"images\.dtype=float64"),
        (np.ones(2, complex), r"images\.dtype=complex128"),
        (np.array([2**31]), r"images\.dtype=int64 holds values beyond 32 bits"),
        (np.array([-(2**31) - 1]), r"images\.dtype=int64 holds values beyond 32 bits"),
        (np.array([2**32], np.uint64), r"images\.dtype=uint64 holds values beyond 32 bits"),
        (2**31, "images is int, which is not an array of numbers"),
    ],
)
def test_without_64_bit_types_nothing_is_truncated(value, reason):
    with jax.enable_x64(False), pytest.raises(ValueError, match=reason):
        as_array(value, "images")
    as_array(value, "images")  # with them it passes


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (np.array([2**31 - 1, -(2**31)]), "int32"),
        (np.zeros(0, np.int64), "int32"),
        (np.ones(2, np.float32), "float32"),
        ([0.5, 1.5], "float32"),
        ([1, 2], "int32"),
    ],
)
def test_without_64_bit_types_what_fits_passes(value, dtype):
    with jax.enable_x64(False):
        out = as_array(value, "images")
        assert_dtype(out, dtype)
        assert_equal(out, value)


@pytest.mark.parametrize(
    ("operands", "dtype"),
    [
        (("bfloat16",), "float32"),
        (("float16", "bfloat16"), "float32"),
        (("float16", "int32"), "float32"),
        (("float64", "float16"), "float64"),
        (("int32",), "int32"),
        (("uint8", "int32"), "int32"),
        (("complex64",), "complex64"),
    ],
)
def test_sums_run_in_at_least_float32(operands, dtype):
    assert accumulation_dtype(*operands) == np.dtype(dtype)
    assert accumulation_dtype(*(jnp.ones(1, operand) for operand in operands)) == np.dtype(dtype)


@pytest.mark.parametrize(
    ("dtype", "bad"),
    [("float64", np.nan), ("float32", np.inf), ("bfloat16", -np.inf), ("float16", np.nan)],
)
def test_numbers_that_are_not_finite_are_counted_and_located(dtype, bad):
    array = jnp.zeros((2, 3), dtype).at[1, 0].set(bad).at[1, 2].set(bad)
    with pytest.raises(ValueError, match=r"bias has 2 non-finite entries, the first at .*\(1, 0\)"):
        require_finite(array, "bias")


def test_complex_numbers_are_looked_at_in_both_parts():
    with pytest.raises(ValueError, match="1 non-finite"):
        require_finite(jnp.array([1 + 1j, complex(0, np.inf)]), "kernel")


def test_a_traced_array_is_not_looked_at():
    @jax.jit
    def double(array):
        require_finite(array, "kernel")
        return 2 * array

    assert np.isinf(double(jnp.array(np.inf)))


@pytest.mark.parametrize(
    "dtype", ["float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "int4", "longdouble", "clongdouble"]
)
@pytest.mark.parametrize("on", [True, False])
def test_formats_that_do_not_mix_are_refused_by_name(dtype, on):
    array = np.ones(2, jnp.dtype(dtype) if dtype[-1].isdigit() or "fn" in dtype else dtype)
    with jax.enable_x64(on), pytest.raises(ValueError, match=r"^images\.dtype=.*; cast images to"):
        as_array(array, "images")


def test_64_bit_arrays_of_jax_do_not_outlive_the_64_bit_types():
    wide, integers, large = jnp.ones(2, "float64"), jnp.array([3, -4]), jnp.array([2**40])
    with jax.enable_x64(False):
        with pytest.raises(ValueError, match=r"images\.dtype=float64, but 64-bit types are off"):
            as_array(wide, "images")
        with pytest.raises(ValueError, match=r"images\.dtype=int64 holds values beyond 32 bits"):
            as_array(large, "images")
        narrowed = as_array(integers, "images")
        assert_dtype(narrowed, "int32")
        assert_equal(narrowed, [3, -4])
