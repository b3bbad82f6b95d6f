"""`write_onnx`: any function of JAX as an ONNX file, checked by running it.

jax2onnx puts operators of its own in the place of functions of JAX and Flax while it traces, so
that `with_attention` would not see the convolutions of Flax. So the function is traced before, and
what jax2onnx gets is a jaxpr. It leaves out the transposition of a `reshape` with `dimensions`,
which `jax.vmap` of a convolution makes: there it gets the transposition itself. What else it may
write wrongly shows when the file is run.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import jaxpr_as_fun

from convattn.extras import require
from convattn.files import write_file
from convattn.networks.transformation.evaluation import (
    RULES,
    Evaluation,
    Place,
    Rule,
    Values,
    inner_jaxprs,
)
from convattn.networks.transformation.report import output_difference

LIMIT = 1e-5  # of the largest output


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

    Raises:
        ValueError: For a primitive of JAX that jax2onnx does not write, with its name; for a file
            that onnxruntime does not run; and where an output differs by more than 1e-5 of the
            largest. Nothing is written then. `ModuleNotFoundError` without the extra.
    """
    require("jax2onnx")
    require("onnxruntime")
    arguments = example if type(example) is tuple else (example,)
    arrays = [jnp.asarray(argument) for argument in arguments]
    model = _model(function, arrays)
    outputs = _run(model, arrays)
    expected = function(*arrays)
    leaves = jax.tree.leaves(expected)
    if len(outputs) != len(leaves):
        raise ValueError(
            f"{path}: the file has {len(outputs)} outputs, but the function {len(leaves)}; give "
            "arrays that differ"
        )
    compared = output_difference(leaves, [jnp.asarray(each) for each in outputs])
    if compared is None:
        raise ValueError("the arrays are traced, but expected values; call write_onnx outside jit")
    difference, largest, _ = compared
    if not difference <= LIMIT * largest:
        raise ValueError(
            f"{path}: onnxruntime's outputs differ by {difference:.2e} of {largest:.3g}, but "
            f"expected at most {LIMIT:.0e} of the largest; nothing is written. jax2onnx writes one "
            "of the primitives otherwise than JAX computes it: try another back end of attention, "
            "or export with jax.export"
        )
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

    def equation(self, equation: Any, values: Values, place: Place) -> Values:
        """The results of an equation."""
        parameters, rule = equation.params, self.rules.get(equation.primitive.name)
        if equation.primitive.name == "reshape" and parameters["dimensions"] is not None:
            turned = lax.transpose(values[0], parameters["dimensions"])
            return [lax.reshape(turned, parameters["new_sizes"])]
        return self.bind(equation, values) if rule is None else rule(self, equation, values, place)


def _inlined(evaluation: Evaluation, equation: Any, values: Values, place: Place) -> Values:
    (jaxpr,) = inner_jaxprs(equation)
    constants = getattr(
        equation.params.get("jaxpr", equation.params.get("call_jaxpr")), "consts", ()
    )
    return evaluation.outputs(jaxpr, constants, values, place)


def _model(function: Callable[..., Any], arrays: list[jax.Array]) -> Any:
    from jax2onnx import to_onnx

    jaxpr = jax.make_jaxpr(function)(*arrays)
    traced = jaxpr_as_fun(
        jax.make_jaxpr(lambda *own: _Plain().closed(jaxpr, own, Place()))(*arrays)
    )
    shapes = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arrays]
    double = any(array.dtype == jnp.float64 for array in arrays)
    try:
        return to_onnx(traced, shapes, enable_double_precision=double)
    except NotImplementedError as error:
        found = re.search(r"primitive '([^']+)'", str(error))
        what = f"the primitive {found[1]}" if found else str(error)
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
        names = [given.name for given in session.get_inputs()]
        values = dict(zip(names, map(np.asarray, arrays), strict=True))
        return list(session.run(None, values))
    except Exception as error:  # onnxruntime has a class for each status, of no common base
        dtypes = ", ".join(sorted({str(array.dtype) for array in arrays}))
        raise ValueError(
            f"onnxruntime does not run the file: {str(error).splitlines()[0]}; the example is in "
            f"{dtypes}, and float32 is what it has most operators for"
        ) from error
