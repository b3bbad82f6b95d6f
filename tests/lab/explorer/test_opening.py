"""What opening a model needs to be installed, and what it refuses."""

import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from diagnosis.small_transformers import timm_dict

from convattn.extras import EXTRA
from convattn.networks.weights.formats import write_safetensors
from convattn_lab.explorer.opening import FOR_RUNS, open_source

PYPROJECT = Path(__file__).parents[3] / "pyproject.toml"
# By `explore`, and needed for every model.
BROUGHT = ("PIL", "pydantic", "rich", "starlette", "tyro", "uvicorn")


def test_the_extra_brings_what_any_model_needs() -> None:
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    brought = " ".join((*extras["explore"], *extras["cli"], *extras["nnx"]))
    for name in (*FOR_RUNS, *BROUGHT):
        assert {"PIL": "pillow"}.get(name, name) in brought


@pytest.mark.slow
def test_flax_is_asked_for_where_it_is_needed(files, tmp_path) -> None:
    program = f"""
import sys
from pathlib import Path
for name in {[name for name in EXTRA if name not in BROUGHT]}:
    sys.modules[name] = None
from convattn_lab.explorer.model import ExploredModel
from convattn_lab.explorer.opening import open_source
from convattn_lab.explorer.server import explorer
files = Path({str(files)!r})
vit = open_source(files / "vit.safetensors", heads=2, image_size=(8, 12))
for source in (vit, open_source(files / "maps.npy", image_size=(2, 3))):
    explorer(ExploredModel(source), "token", 1)
open_source(files / "layer.safetensors")
try:
    open_source(Path({str(tmp_path)!r}))
except ModuleNotFoundError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    message = "flax is not installed; it comes with an extra: pip install 'convattn[nnx]'"
    assert done.stdout.splitlines() == [message]


def test_rotary_positions_are_refused(tmp_path) -> None:
    """Their angles stand in no tensor, so the attention would be another network's."""
    usual = {name: array.astype(np.float32) for name, array in timm_dict().items()}
    usual.pop("pos_embed")
    path = tmp_path / "vit.safetensors"
    path.write_bytes(write_safetensors(usual, {}))
    with pytest.raises(ValueError, match=r"vit\.safetensors has .* rotary positions.*--rotary"):
        open_source(path, heads=2, image_size=(8, 12))


@pytest.mark.parametrize("package", FOR_RUNS)
def test_what_restores_a_run_is_asked_for(tmp_path, monkeypatch, package) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError, match=rf"{package} is not installed.*convattn\["):
        open_source(tmp_path)
