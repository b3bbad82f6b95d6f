"""Networks as ONNX files in operators that verifiers read.

`convattn.networks.onnx.write_onnx` writes and runs a function as it was traced. Here constants are
folded (onnxruntime's basic level, standard operators only), ReLU is called so, sums of products are
`MatMul`, and the version of the operators is one that verifiers know. Each is the same function of
real numbers; in float32 it is a sum in another order, which the bound of a pair covers.
"""

import hashlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from convattn.extras import require
from convattn.files import write_file
from convattn.networks.onnx import write_onnx

OPSET, FORMAT = 17, 8  # of operators, of 2022; of files, which goes with it
INPUT, OUTPUT = "X", "Y"


def write_network(function: Callable[[Any], Any], example: Any, path: Path) -> dict[str, int]:
    """Write a function as ONNX; how often each operator occurs.

    Args:
        function: Of images, in float32.
        example: Images of the batch that the file takes.
        path: Of the file.

    Raises:
        ValueError: Where jax2onnx or onnxruntime does not have an operator.
    """
    onnx = _onnx()
    with tempfile.TemporaryDirectory() as folder:
        traced, folded = (Path(folder) / name for name in ("traced.onnx", "folded.onnx"))
        write_onnx(function, example, traced)
        _fold(traced, folded)
        model = onnx.load(folded)
    graph = model.graph
    nodes = [new for node in graph.node for new in _standard(node, _constants(graph))]
    nodes = _with_biases(nodes, graph)
    del graph.node[:]
    graph.node.extend(nodes)
    del graph.value_info[:]
    _reductions(model)
    _without_pads(model)
    _rename(graph)
    del model.opset_import[:]
    model.opset_import.append(onnx.helper.make_opsetid("", OPSET))
    _tidy(model)
    onnx.checker.check_model(model, full_check=True)
    write_file(path, model.SerializeToString(deterministic=True))
    counts: dict[str, int] = {}
    for node in model.graph.node:
        counts[node.op_type] = counts.get(node.op_type, 0) + 1
    return dict(sorted(counts.items()))


def run_network(path: Path, images: np.ndarray) -> np.ndarray:
    """The logits of images `[batch, …]`, one after the other, by onnxruntime."""
    require("onnxruntime")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return np.concatenate([session.run(None, {INPUT: image[None]})[0] for image in images])


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _onnx() -> Any:
    require("jax2onnx")
    import onnx

    return onnx


def _fold(source: Path, target: Path) -> None:
    require("onnxruntime")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(target)
    options.log_severity_level = 3
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


def _constants(graph: Any) -> dict[str, np.ndarray]:
    from onnx import numpy_helper

    return {array.name: numpy_helper.to_array(array) for array in graph.initializer}


def _attributes(node: Any) -> dict[str, Any]:
    from onnx import helper

    return {each.name: helper.get_attribute_value(each) for each in node.attribute}


def _standard(node: Any, constants: dict[str, np.ndarray]) -> list[Any]:
    """A node in operators that verifiers read."""
    from onnx import helper

    if node.op_type == "Conv":
        own = _attributes(node) | {"kernel_shape": constants[node.input[1]].shape[2:]}
        own.pop("auto_pad", None)  # NOTSET: `pads` says it
        return [helper.make_node("Conv", node.input, node.output, **own)]
    if node.op_type == "Max":
        zeros = [name for name in node.input if name in constants and not constants[name].any()]
        if zeros and len(node.input) == 2:
            (rest,) = (name for name in node.input if name != zeros[0])
            return [helper.make_node("Relu", [rest], node.output)]
        floors = [n for n in node.input if n in constants and np.isneginf(constants[n]).all()]
        if floors and len(node.input) == 2:
            (rest,) = (name for name in node.input if name != floors[0])
            return [helper.make_node("Identity", [rest], node.output)]
    if node.op_type == "Reshape" and constants[node.input[1]].tolist()[:-1] == [1]:
        return [helper.make_node("Flatten", node.input[:1], node.output, axis=1)]
    if node.op_type == "ReduceSumSquare":
        (result,) = node.output
        square = helper.make_node("Mul", [node.input[0]] * 2, [f"{result}_square"])
        total = helper.make_node("ReduceSum", [square.output[0], *node.input[1:]], [result])
        total.attribute.extend(node.attribute)
        return [square, total]
    if node.op_type == "Einsum":
        return _products(node, constants)
    return [node]


def _with_biases(nodes: list[Any], graph: Any) -> list[Any]:
    """`Gemm` as PyTorch writes it, where it had a zero as its bias and one was added after it."""
    from onnx import helper, numpy_helper

    constants = _constants(graph)
    merged: list[Any] = []
    for node in nodes:
        before: Any = merged[-1] if merged else node
        is_bias = node.op_type == "Add" and _is_plain(before)
        if is_bias and before.output[0] in node.input and not constants[before.input[2]].any():
            (name,) = (name for name in node.input if name != before.output[0])
            if name in constants and constants[name].size == constants[before.input[1]].shape[-1]:
                arrays = constants[before.input[1]].T.copy(), constants[name].reshape(-1)
                names = [f"{name}_{kind}" for kind in ("weights", "bias")]
                for array, own in zip(arrays, names, strict=True):
                    graph.initializer.append(numpy_helper.from_array(array, own))
                inputs = [before.input[0], *names]
                merged[-1] = helper.make_node("Gemm", inputs, node.output, transB=1)
                continue
        merged.append(node)
    for place, node in enumerate(merged):
        if _is_plain(node) and not constants.get(node.input[2], np.ones(1)).any():
            merged[place] = helper.make_node("MatMul", node.input[:2], node.output)
    return merged


def _is_plain(node: Any) -> bool:
    """Whether a node is a product of matrices as they are."""
    own = _attributes(node)
    turned = own.get("transA", 0) or own.get("transB", 0)
    return node.op_type == "Gemm" and not turned and own.get("alpha", 1.0) == 1.0


def _products(node: Any, constants: dict[str, np.ndarray]) -> list[Any]:
    """A sum of products over one index as `MatMul`, between transpositions where it needs them."""
    from onnx import helper

    equation = helper.get_node_attr_value(node, "equation").decode()
    operands, result = equation.split("->")
    left, right = operands.split(",")
    summed = "".join(sorted(set(left) & set(right) - set(result)))
    shared = [letter for letter in result if letter in left and letter in right]
    mine, theirs = ([x for x in part if x not in shared and x != summed] for part in (left, right))
    if len(summed) != 1 or len(theirs) != 1 or (len(mine) != 1 and (shared or len(right) != 2)):
        raise ValueError(f"Einsum {equation}, but expected products of matrices")
    orders = [*shared, *mine, summed], [*shared, summed, *theirs]
    nodes, names = [], []
    for name, letters, order in zip(node.input, (left, right), orders, strict=True):
        names.append(name)
        if list(letters) != order:
            names[-1] = f"{node.output[0]}_{len(names)}"
            turned = [letters.index(letter) for letter in order]
            nodes.append(helper.make_node("Transpose", [name], names[-1:], perm=turned))
    own = [*shared, *mine, *theirs]
    if own == list(result):
        return [*nodes, helper.make_node("MatMul", names, node.output)]
    nodes.append(helper.make_node("MatMul", names, [f"{node.output[0]}_product"]))
    turned = [own.index(letter) for letter in result]
    return [*nodes, helper.make_node("Transpose", nodes[-1].output, node.output, perm=turned)]


def _reductions(model: Any) -> None:
    """Axes counted from the last, which need no batch; of maxima as before version 18."""
    from onnx import helper, numpy_helper

    graph, constants, shapes = model.graph, _constants(model.graph), _shapes(model)
    for number, node in enumerate(graph.node):
        if node.op_type not in ("ReduceSum", "ReduceMax"):
            continue
        own = _attributes(node)
        axes = own.get("axes") or constants[node.input.pop()].tolist()
        axes = [axis if axis < 0 else axis - len(shapes[node.input[0]]) for axis in axes]
        del node.attribute[:]
        node.attribute.append(helper.make_attribute("keepdims", own.get("keepdims", 1)))
        if node.op_type == "ReduceMax":
            node.attribute.append(helper.make_attribute("axes", axes))
        else:
            node.input.append(f"axes{number}")
            graph.initializer.append(numpy_helper.from_array(np.array(axes), node.input[1]))


def _shapes(model: Any) -> dict[str, tuple[int, ...]]:
    """Of every array that depends on the images."""
    from onnx import shape_inference

    inferred = shape_inference.infer_shapes(model).graph
    return {
        array.name: tuple(side.dim_value for side in array.type.tensor_type.shape.dim)
        for array in (*inferred.value_info, *inferred.input)
    }


def _without_pads(model: Any) -> None:
    """Zeros laid around an array as its product with a matrix of zeros and ones."""
    from onnx import helper, numpy_helper

    graph, constants, shapes = model.graph, _constants(model.graph), _shapes(model)
    nodes: list[Any] = []
    for node in graph.node:
        nodes.append(node)
        fill = constants.get(node.input[2], np.zeros(1)) if len(node.input) > 2 else np.zeros(1)
        if node.op_type != "Pad" or fill.any():
            continue
        shape, name = shapes[node.input[0]], node.output[0]
        widths = constants[node.input[1]].reshape(2, -1).T
        places = np.pad(np.arange(np.prod(shape)).reshape(shape), widths, constant_values=-1)
        matrix = (np.arange(np.prod(shape))[:, None] == places.ravel()).astype(np.float32)
        sides = np.array(places.shape, np.int64)
        for array, kind in ((matrix, "matrix"), (sides, "sides")):
            graph.initializer.append(numpy_helper.from_array(array, f"{name}_{kind}"))
        nodes[-1:] = [
            helper.make_node("Flatten", node.input[:1], [f"{name}_flat"], axis=1),
            helper.make_node("MatMul", [f"{name}_flat", f"{name}_matrix"], [f"{name}_laid"]),
            helper.make_node("Reshape", [f"{name}_laid", f"{name}_sides"], node.output),
        ]
    del graph.node[:]
    graph.node.extend(nodes)


def _rename(graph: Any) -> None:
    """Plain names, in the order of the file: those of tools count what they have written before."""
    names = {graph.input[0].name: INPUT, graph.output[0].name: OUTPUT}
    inputs = {name for node in graph.node for name in node.input}
    constants = [array for array in graph.initializer if array.name in inputs]
    del graph.initializer[:]
    graph.initializer.extend(constants)
    del graph.value_info[:]
    for number, array in enumerate(graph.initializer):
        array.name = names.setdefault(array.name, f"c{number}")
    for number, node in enumerate(graph.node):
        for place, name in enumerate(node.output):
            node.output[place] = names.setdefault(name, f"n{number}")
        for place, name in enumerate(node.input):
            node.input[place] = names.get(name, name)
        node.name = f"{node.op_type}{number}"
    graph.input[0].name, graph.output[0].name, graph.name = INPUT, OUTPUT, "network"


def _tidy(model: Any) -> None:
    """One version of everything, and nothing that says by what and when it was written."""
    model.ir_version, model.producer_name, model.producer_version = FORMAT, "convattn", ""
    model.domain, model.doc_string = "", ""
    del model.metadata_props[:]
    for node in model.graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
    del model.graph.metadata_props[:]
    del model.functions[:]
