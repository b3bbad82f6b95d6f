import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import convattn as ca

pytest.importorskip("jax2onnx")
onnxruntime = pytest.importorskip("onnxruntime")
nnx = pytest.importorskip("flax.nnx")

from convattn.networks import onnx  # noqa: E402

IMAGES = jax.random.normal(jax.random.key(0), (2, 8, 7, 3), "float32")
CONVOLUTIONS = {
    "strided": {"strides": 2},
    "circular": {"padding": "CIRCULAR"},
    "depthwise": {"feature_group_count": 3},
}


def outputs_of(path, *arrays):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    return session.run(None, dict(zip(names, map(np.asarray, arrays), strict=True)))


@pytest.mark.parametrize("kind", CONVOLUTIONS)
@pytest.mark.parametrize("backend", ["shift", "dense"])
def test_attention_is_written_and_runs(kind, backend, tmp_path) -> None:
    conv = nnx.Conv(3, 6, (3, 3), param_dtype="float32", rngs=nnx.Rngs(0), **CONVOLUTIONS[kind])
    path = tmp_path / "attention.onnx"
    report = onnx.write_onnx(ca.with_attention(conv, backend=backend), IMAGES, path)
    assert report.difference <= 1e-5 * report.largest
    assert ("Conv" in report.operators) == (backend == "shift")
    assert "Exp" in report.operators  # of the softmax: attention was written, not the convolution
    (outputs,) = outputs_of(path, IMAGES)
    assert abs(outputs - conv(IMAGES)).max() <= 1e-5 * abs(outputs).max()


def test_several_inputs_and_outputs(tmp_path) -> None:
    def function(left, right):
        return {"product": left @ right, "rest": (left + 1, right.sum())}

    left, right = IMAGES[0, :7, :, 0], IMAGES[1, :7, :, 1]
    onnx.write_onnx(function, (left, right), tmp_path / "f.onnx")
    for one, other in zip(
        outputs_of(tmp_path / "f.onnx", left, right),
        jax.tree.leaves(function(left, right)),
        strict=True,
    ):
        assert abs(one - other).max() <= 1e-5 * abs(other).max()


def test_a_reshape_that_transposes_is_written_right(tmp_path) -> None:
    def function(x):
        return lax.reshape(jnp.sin(x), (3, 112), dimensions=(3, 0, 2, 1))

    report = onnx.write_onnx(function, IMAGES, tmp_path / "f.onnx")
    assert "Transpose" in report.operators


def test_a_missing_primitive_is_named_and_nothing_is_written(tmp_path) -> None:
    def function(x):
        return jax.pure_callback(lambda value: value, x, x)

    with pytest.raises(ValueError, match="the primitive pure_callback"):
        onnx.write_onnx(function, IMAGES, tmp_path / "f.onnx")
    assert not (tmp_path / "f.onnx").exists()


def test_wrong_outputs_are_not_written(tmp_path, monkeypatch) -> None:
    run = onnx._run
    monkeypatch.setattr(
        onnx, "_run", lambda model, arrays: [each * 1.001 for each in run(model, arrays)]
    )
    with pytest.raises(ValueError, match="outputs differ by"):
        onnx.write_onnx(jnp.sin, IMAGES, tmp_path / "f.onnx")
    assert not (tmp_path / "f.onnx").exists()
