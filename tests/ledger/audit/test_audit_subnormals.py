import numpy as np
import pytest

from convattn_ledger.audit.float_format import float_format
from convattn_ledger.audit.subnormals import Arithmetic, measure_subnormals

HOST = Arithmetic(np.add, np.multiply, np.divide, np.exp)
FLAGS = {name: f"{name}_kept" for name in Arithmetic._fields}


def flushing(operation):
    def flushed(*operands):
        result = operation(*operands)
        tiny = np.finfo(result.dtype).tiny
        return np.where(np.abs(result) < tiny, np.zeros_like(result), result)

    return flushed


def reading_subnormals_as_zero(operation):
    def blind(*operands):
        tiny = np.finfo(operands[0].dtype).tiny
        return operation(*(np.where(np.abs(each) < tiny, 0, each) for each in operands))

    return blind


@pytest.mark.parametrize("name", ["float32", "float16"])
def test_gradual_underflow_is_seen_as_such(name) -> None:
    number_format = float_format(name)
    measured = measure_subnormals(number_format, HOST)
    assert measured.inputs_kept
    assert all(getattr(measured, flag) for flag in FLAGS.values())
    assert measured.exp_zero_from == pytest.approx(number_format.one_hot_kept, rel=2.0**-10)


@pytest.mark.parametrize("operation", FLAGS)
def test_flushing_in_one_operation_convicts_that_one(operation) -> None:
    planted = HOST._replace(**{operation: flushing(getattr(HOST, operation))})
    measured = measure_subnormals(float_format("float32"), planted)
    gradual = {each for each, flag in FLAGS.items() if getattr(measured, flag)}
    assert gradual == FLAGS.keys() - {operation}


def test_subnormal_inputs_read_as_zero_are_seen() -> None:
    planted = HOST._replace(multiply=reading_subnormals_as_zero(np.multiply))
    measured = measure_subnormals(float_format("float32"), planted)
    assert not measured.inputs_kept
    assert measured.multiply_kept


def test_flushing_exp_is_zero_from_the_least_normal_number_on() -> None:
    number_format = float_format("float32")
    measured = measure_subnormals(number_format, HOST._replace(exp=flushing(np.exp)))
    assert measured.exp_zero_from == pytest.approx(number_format.one_hot_flushed, rel=2.0**-22)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16"])
def test_device_is_consistent_with_itself(name) -> None:
    number_format = float_format(name)
    measured = measure_subnormals(number_format)
    spacing = number_format.one_hot_kept * 2.0 ** (1 - number_format.precision)
    if measured.exp_kept:
        assert abs(measured.exp_zero_from - number_format.one_hot_kept) <= 2 * spacing
    else:
        assert measured.exp_zero_from < number_format.one_hot_kept - spacing
