"""Folders of runs, their settings, checkpoints, and what is recorded of them."""

import functools
import json
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from fuzz.reader import ROOT, chosen, folder_bytes, same, unpacked

sys.path.append(str(ROOT / "experiments"))


def run_files() -> bytes:
    """The folder of a run that was pruned."""
    import tempfile

    from lab.analysis.synthetic_runs import write_pruning, write_run

    with tempfile.TemporaryDirectory() as place:
        path = write_pruning(write_run(Path(place, "run"), snapshots=None, validation=(0.1, 0.2)))
        directory = json.loads((path / "run.json").read_text())
        directory["command"] = "python experiments/cifar.py"
        (path / "run.json").write_text(json.dumps(directory, indent=2) + "\n")
        return folder_bytes(path)


def read_run(content: bytes, folder: Path) -> None:
    """All that is read of a run but its checkpoints: each part may be refused."""
    from convattn_lab.analysis.curves import run_curves
    from convattn_lab.analysis.run_summary import head_numbers, read_summary
    from convattn_lab.analysis.snapshots import query_attention, read_layers, tokens_of
    from convattn_lab.records.table import table_row
    from convattn_lab.runs.directory import RunDirectory

    path = unpacked(content, folder)
    directory, problem = RunDirectory(path), None

    def attention() -> None:
        for layer in read_layers(path)[1]:
            query_attention(layer["scores"], (0, 0), tokens_of(layer["scores"]))

    parts: list[Callable[[], Any]] = [
        lambda: read_summary(path),
        lambda: run_curves(path).label,
        lambda: head_numbers(path),
        attention,
        directory.read_metadata,
        directory.read_initial,
        directory.read_conversion,
    ]
    if chosen(content, 20):
        parts.append(lambda: table_row(path).cells())
    for part in parts:
        try:
            part()
        except ValueError as refused:
            problem = problem or refused
    if problem is not None:
        raise problem


def read_settings(content: bytes, folder: Path) -> None:
    """A config.json, and the sizes of its model, of which nothing is allocated."""
    from convattn_lab.models.sizes import abstract_model, flop_count, parameter_count
    from convattn_lab.runs.directory import RunDirectory

    folder = folder / "given"
    folder.mkdir()
    (folder / "config.json").write_bytes(content)
    settings = RunDirectory(folder).read_settings()
    parameter_count(abstract_model(settings.model))
    flop_count(settings.model)


def settings_seeds() -> list[bytes]:
    """One of each kind of model."""
    from convattn.nnx import VisionTransformerSettings
    from convattn_lab.models import settings as models
    from convattn_lab.runs.settings import RunSettings
    from convattn_lab.settings import to_json

    kinds: list[Any] = [
        models.EncoderSettings(heads=(2,), width=8, inner=6),
        models.EncoderSettings(heads=(2,), width=8, inner=6, encoding="content"),
        models.ResNetSettings(channels=(4,), blocks=(1,)),
        models.SelfAttentiveResNetSettings(channels=(4,), blocks=(1,)),
        VisionTransformerSettings(depth=1, width=48, inner=6, heads=2, patch_size=4),
    ]
    return [json.dumps(to_json(RunSettings(model)), indent=2).encode() for model in kinds]


def read_records(content: bytes, folder: Path) -> None:
    """The record of a run, for a row of each kind, and of a comparison; each may be refused."""
    from convattn_ledger.run import EvidenceFailed, Run

    path = folder / "given"
    path.write_bytes(content)
    problem = None
    for check in _backing(path):
        try:
            check(Run(0, True, path.parent))
        except EvidenceFailed as refused:
            problem = refused
    if problem is not None:
        raise problem


def _backing(path: Path) -> list[Any]:
    from convattn_lab.records.record import experiment_row

    claims = ("C20.quadratic", "C20.pruned", "L21.twophase")
    return [replace(experiment_row(claim), path=path) for claim in claims]


def records_seeds() -> list[bytes]:
    """Records that count for a row."""
    from proofs.cordonnier2020_records import full_record

    rows = [check.experiment() for check in _backing(Path("x"))[:2]]
    return [json.dumps(full_record(row, 0.938)).encode() for row in rows]


def read_trials(content: bytes, folder: Path) -> None:
    """The result of a run that compares initializers."""
    from initialization_comparison.results import read_results

    (folder / "given.json").write_bytes(content)
    read_results(folder)


def trial_seeds() -> list[bytes]:
    """Results that are committed, with their curves made short."""
    paths = sorted((ROOT / "docs/measurements/initialization").rglob("*.json"))
    seeds = []
    for path in paths:
        result = json.loads(path.read_bytes())
        if isinstance(result, dict) and {"curve", "snapshots"} <= set(result):
            result |= {"curve": result["curve"][:2], "snapshots": result["snapshots"][:1]}
            seeds.append(json.dumps(result, separators=(",", ":")).encode())
    return seeds[:3]


def read_checkpoint(content: bytes, folder: Path) -> None:
    """The newest checkpoint of a folder; what is restored is what was saved."""
    from convattn_lab.training.checkpoints import CheckpointStore, digest
    from convattn_lab.training.state import named_arrays

    path = unpacked(content, folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = CheckpointStore(path).restore_newest(_state(0), set_aside=False)
    if result is not None:
        expected = digest(named_arrays(_state(result.step)))
        same(digest(named_arrays(result.state)), expected, "the state")


@functools.cache
def _state(step: int) -> Any:
    import jax
    import jax.numpy as jnp
    from lab.training.tiny import Normalized, settings

    from convattn_lab.training.optimizer import make_optimizer
    from convattn_lab.training.state import initial_state

    def numbered(leaf: Any) -> Any:
        """The same on every machine, where first parameters are not to the last bit."""
        return (jnp.arange(leaf.size).reshape(leaf.shape) % 251 + step).astype(leaf.dtype)

    drawn = initial_state(Normalized(0), make_optimizer(settings(), 12), 0)[1]
    return jax.tree.map(numbered, drawn)


def checkpoint_seeds() -> list[bytes]:
    """The checkpoints of steps 3 and 7, and that of step 7 alone."""
    import shutil
    import tempfile

    from convattn_lab.training.checkpoints import CheckpointStore
    from convattn_lab.training.state import named_arrays

    with tempfile.TemporaryDirectory() as place:
        path = Path(place)
        store = CheckpointStore(path, 2)
        for step in (3, 7):
            store.save(step, named_arrays(_state(step)), {"seconds": step / 3})
        store.close()
        both = folder_bytes(path)
        shutil.rmtree(path / "3")
        return [both, folder_bytes(path)]
