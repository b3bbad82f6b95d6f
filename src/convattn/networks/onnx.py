"""`write_onnx`: any function of JAX as an ONNX file, checked by running it.

jax2onnx puts operators of its own in the place of functions of JAX and Flax while it traces, so
that `with_attention` would not see the convolutions of Flax. So the function is traced before, and
what jax2onnx gets is a jaxpr. It leaves out the transposition of a `reshape` with `dimensions`,
which `jax.vmap` of a convolution makes: there it gets the transposition itself. It takes all axes
for those of space in max pooling, of which onnxruntime has three at most: there the axes that are
not pooled become one. What else it may write wrongly shows when the file is run.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import jaxpr_as_fun

from convattn.extras import require
from convattn.files import write_file
from convattn.networks.transformation.contents import inner_jaxprs
from convattn.networks.transformation.evaluation import RULES, Evaluation, Rule, Scope, Values
from convattn.networks.transformation.report import output_differences
from convattn.networks.transformation.with_attention import is_array
from convattn.operators.arrays import is_traced

LIMIT = 1e-5  # of the largest entry of each output


class OnnxReport(NamedTuple):
    """How the outputs of the file compare with those of the function on the example.

    Attributes:
        difference: The largest of all outputs.
        largest: The largest output in absolute value.
        operators: Those that the file uses, by name.
    """

    difference: float
    largest: float
    operators: tuple[str, ...]


def write_onnx(function: Callable[..., Any], example: Any, path: Path | str) -> OnnxReport:
    """Write a function as ONNX, such as that of `convattn.with_attention`, for inputs of one shape.

    The file is run by onnxruntime on the example before it is written.

    Args:
        function: Takes arrays, and gives one or several in tuples, lists or dictionaries.
            Parameters that it holds become constants of the file.
        example: An array, or a tuple of arrays; their shapes and dtypes are those of the file's
            inputs.
        path: Where the file is written, whole or not at all.
    """
    require("jax2onnx")
    require("onnxruntime")
    arguments = example if type(example) is tuple else (example,)
    if is_traced(arguments) or not all(map(is_array, arguments)):
        kinds = ", ".join(type(argument).__name__ for argument in arguments)
        raise ValueError(
            f"example is {kinds}, but expected an array, or a tuple of arrays, with values; call "
            "write_onnx outside jit, and take lists and dictionaries apart in the function"
        )
    arrays = [jnp.asarray(argument) for argument in arguments]
    model = _model(function, arrays)
    outputs = _run(model, arrays)
    leaves = jax.tree.leaves(function(*arrays))
    shapes = [[np.shape(each) for each in several] for several in (outputs, leaves)]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"{path}: the file has outputs of shapes {shapes[0]}, but the function {shapes[1]}; "
            "give arrays that differ"
        )
    differences = output_differences(leaves, outputs) or []
    for difference, largest, _ in differences:
        if not difference <= LIMIT * largest:
            raise ValueError(
                f"{path}: an output of onnxruntime differs by {difference:.2e} of {largest:.3g}, "
                f"but expected at most {LIMIT:.0e} of its largest entry; nothing is written. "
                "jax2onnx writes one of the primitives otherwise than JAX computes it: try another "
                "back end of attention, or export with jax.export"
            )
    difference, largest = (max(each[index] for each in differences) for index in (0, 1))
    write_file(Path(path), model.SerializeToString())
    operators = sorted({node.op_type for node in model.graph.node})
    return OnnxReport(difference, largest, tuple(operators))


class _Plain(Evaluation):
    """A function without compiled parts and derivatives of their own, and without such reshapes."""

    @property
    def rules(self) -> Mapping[str, Rule]:
        """For each primitive that holds jaxprs, how it is evaluated."""
        inlined = ("jit", "checkpoint", "remat2", "custom_jvp_call", "custom_vjp_call")
        return RULES | dict.fromkeys(inlined, _inlined)

    def equation(self, equation: Any, values: Values, scope: Scope) -> Values:
        """The results of an equation."""
        parameters, rule = equation.params, self.rules.get(equation.primitive.name)
        if equation.primitive.name == "reshape" and parameters["dimensions"] is not None:
            turned = lax.transpose(values[0], parameters["dimensions"])
            return [lax.reshape(turned, parameters["new_sizes"])]
        if equation.primitive.name == "reduce_window_max":
            return [_max_pool(equation, values[0])]
        return self.bind(equation, values) if rule is None else rule(self, equation, values, scope)


def _max_pool(equation: Any, operand: Any) -> Any:
    """Max pooling, the axes that it leaves as they are in one."""
    plain = {name: (0, 0) if name == "padding" else 1 for name in equation.params}
    parameters, axes = equation.params, range(operand.ndim)
    pooled_axes = [
        axis for axis in axes if any(parameters[key][axis] != plain[key] for key in plain)
    ]
    order = [axis for axis in axes if axis not in pooled_axes] + pooled_axes
    transposed = lax.transpose(operand, order)
    unpooled = transposed.shape[: operand.ndim - len(pooled_axes)]
    flat = transposed.reshape(-1, *transposed.shape[len(unpooled) :])
    own = {key: (plain[key], *(parameters[key][axis] for axis in pooled_axes)) for key in plain}
    result = equation.primitive.bind(flat, **own)
    return lax.transpose(result.reshape(*unpooled, *result.shape[1:]), np.argsort(order))


def _inlined(evaluation: Evaluation, equation: Any, values: Values, scope: Scope) -> Values:
    (jaxpr,) = inner_jaxprs(equation)
    constants = getattr(
        equation.params.get("jaxpr", equation.params.get("call_jaxpr")), "consts", ()
    )
    return evaluation.outputs(jaxpr, constants, values, scope)


@contextmanager
def _unchanged(module: ModuleType) -> Iterator[None]:
    """A module whose names afterwards stand for what they stood for before."""
    before = dict(vars(module))
    try:
        yield
    finally:
        for name, value in before.items():
            if getattr(module, name) is not value:
                setattr(module, name, value)


def _model(function: Callable[..., Any], arrays: list[jax.Array]) -> Any:
    jaxpr = jax.make_jaxpr(function)(*arrays)
    traced = jaxpr_as_fun(
        jax.make_jaxpr(lambda *own: _Plain().closed(jaxpr, own, Scope()))(*arrays)
    )
    shapes = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arrays]
    double = any(array.dtype == jnp.float64 for array in arrays)
    try:
        with _unchanged(jnp):  # jax2onnx leaves a `cumsum` of its own, without axes by position
            from jax2onnx import to_onnx

            return to_onnx(traced, shapes, enable_double_precision=double)
    except NotImplementedError as error:
        match = re.search(r"primitive '([^']+)'", str(error))
        what = f"the primitive {match[1]}" if match else str(error)
        raise ValueError(
            f"jax2onnx does not write {what} as ONNX; compute that part outside the function, or "
            "export it with jax.export"
        ) from error


def _run(model: Any, arrays: list[jax.Array]) -> list[np.ndarray]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        names = [argument.name for argument in session.get_inputs()]
        values = dict(zip(names, map(np.asarray, arrays), strict=True))
        return list(session.run(None, values))
    except Exception as error:  # onnxruntime has a class for each status, of no common base
        dtypes = ", ".join(sorted({str(array.dtype) for array in arrays}))
        raise ValueError(
            f"onnxruntime does not run the file: {str(error).splitlines()[0]}; the example is in "
            f"{dtypes}, and float32 is what it has most operators for"
        ) from error
