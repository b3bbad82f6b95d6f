"""The package as it is imported: light, typed, and with the names that it promises."""

import ast
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import convattn

HEAVY = ("jax", "jaxlib", "numpy", "jaxtyping", "flax", "flint")


def modules_after(statement: str) -> set[str]:
    """Which heavy packages a fresh interpreter has loaded after a statement."""
    program = f"import sys; {statement}; print(*{{name.split('.')[0] for name in sys.modules}})"
    out = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
    )
    return {*out.stdout.split()} & {*HEAVY}


@pytest.mark.parametrize(
    "statement", ["import convattn", "import convattn as ca; dir(ca); ca.__version__"]
)
def test_importing_loads_nothing_heavy(statement):
    assert modules_after(statement) == set()


@pytest.mark.slow
def test_the_first_use_of_a_name_loads_what_it_needs():
    assert {"jax", "numpy", "jaxtyping"} <= modules_after("from convattn import conv")


@pytest.mark.parametrize("name", convattn.__all__)
def test_every_public_name_is_there(name):
    value = getattr(convattn, name)
    if name != "__version__":
        assert value.__name__ == name
        assert value.__doc__
        assert value.__module__.startswith("convattn.")


def test_the_names_are_listed():
    assert dir(convattn) == sorted(convattn.__all__)
    assert len({*convattn.__all__}) == len(convattn.__all__)
    assert {"conv", "conv_to_attention", "apply_attention", "attention_to_conv"} <= {*dir(convattn)}


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'convattn' has no attribute 'cnov'"):
        convattn.cnov  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'cnov'"):
        from convattn import cnov  # noqa: F401


def test_type_checkers_see_the_same_names_in_the_same_places():
    """The lazy table and its twin under TYPE_CHECKING say the same."""
    tree = ast.parse(Path(convattn.__file__).read_text(encoding="utf-8"))
    homes = {
        alias.asname: node.module
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If)
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert homes == convattn._HOMES
    assert homes.keys() == {*convattn.__all__} - {"__version__"}


def test_the_package_is_marked_as_typed():
    assert (Path(convattn.__file__).parent / "py.typed").is_file()


def test_the_version_is_that_of_the_distribution():
    assert convattn.__version__ == version("convattn")


def test_the_source_distribution_has_every_folder_of_the_repository():
    root = Path(__file__).parents[1]
    if not (root / ".git").exists():
        pytest.skip("the list of files is git's")
    words = ["git", "ls-files"]
    files = subprocess.run(words, cwd=root, capture_output=True, text=True, check=True).stdout
    folders = {f"/{name.partition('/')[0]}" for name in files.split() if "/" in name}
    settings = tomllib.loads((root / "pyproject.toml").read_text())
    assert folders <= {*settings["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]}


def test_newer_pythons_and_versions_of_jax_are_allowed():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    bounds = [project["requires-python"], *project["dependencies"]]
    assert not [bound for bound in bounds if "<" in bound]
    for extra in project["optional-dependencies"].values():
        names = [bound.partition(">=")[0] for bound in extra]
        assert len(names) == len(set(names))
