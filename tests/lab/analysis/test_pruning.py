from dataclasses import replace

import jax
import numpy as np
from flax import nnx

from convattn.lab.analysis.pruning import pruned_parameters, spreads_of_layers
from convattn.lab.analysis.pruning_file import Pruning
from convattn.lab.models.settings import EncoderSettings
from convattn.lab.models.sizes import abstract_model
from convattn.lab.training.state import named_arrays

REMOVED = [np.array([True, False, False]), np.array([True, True]), np.array([False])]


def parameters_of(encoding: str, heads: tuple[int, ...]):
    """Numbers that are all different, in the shapes of a model; nothing is compiled."""
    settings = EncoderSettings(encoding, heads=heads, width=4, inner=4)
    state = nnx.state(abstract_model(settings, classes=2, image_size=(4, 4)), nnx.Param)
    leaves, structure = jax.tree.flatten(state)
    starts = np.cumsum([0, *(leaf.size for leaf in leaves)])
    numbers = [
        np.arange(start, start + leaf.size, dtype=leaf.dtype).reshape(leaf.shape)
        for start, leaf in zip(starts, leaves, strict=False)
    ]
    return jax.tree.unflatten(structure, numbers)


def test_kept_heads_and_all_else_stay_and_the_smaller_model_takes_them() -> None:
    for encoding in ("quadratic", "gaussian"):
        before = named_arrays(parameters_of(encoding, (3, 2, 1)))
        after = pruned_parameters(before, REMOVED)
        smaller = named_arrays(parameters_of(encoding, (2, 0, 1)))
        assert {name: array.shape for name, array in smaller.items()} == {
            name: array.shape for name, array in after.items()
        }
        for name, array in after.items():
            whole = before[name]
            if name.startswith("layers.0.attention.") and ".bias" not in name:
                whole = whole[1:]
            assert np.array_equal(array, whole), name
        gone = {name for name in before if name not in after}
        assert {name.split(".")[3] for name in gone} == {"value", "centers", "spreads"}
        assert all(name.startswith("layers.1.attention.") for name in gone)


def test_the_spreads_are_roots_of_the_precision() -> None:
    named = named_arrays(parameters_of("quadratic", (3, 0)))
    name = next(name for name in named if "spreads" in name)
    first, second = spreads_of_layers(named, 2)
    assert second.shape == (0, 2, 2)
    for scale, root in zip(named[name], first, strict=True):
        assert np.array_equal(root, [[scale, 0], [0, scale]])
    named = named_arrays(parameters_of("gaussian", (3,)))
    name = next(name for name in named if "spreads" in name)
    assert np.array_equal(spreads_of_layers(named, 1)[0], named[name])


def test_what_was_pruned_otherwise_is_named() -> None:
    source = {"config": {"seed": 0}, "result": {}, "images_sha256": "a"}
    plan = Pruning(source, {"largest": 1e-5}, [[1]], [2], 300, 0.9)
    assert plan.other_parts(replace(plan, pruned=0.1, after=0.2)) == []
    others = {"config": {"seed": 1}, "result": {"seconds": 1}, "images_sha256": "b"}
    assert plan.other_parts(replace(plan, source=others, kept=[[2]], epochs_before=9)) == [
        "kept",
        "epochs_before",
        "source.config",
        "source.images_sha256",
    ]
