"""The wheel, installed into an environment of its own, away from the checkout.

The environment finds the dependencies through a path file, and the packages only in itself: the
path files of the folder with the dependencies, the editable checkout's among them, are not read.
"""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("convattn", "convattn_check", "convattn_ledger")
DEPENDENCIES = sysconfig.get_path("purelib")


def run(words, folder, **environment):
    """Run a command in a folder, with nothing of this project on its path."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        [str(word) for word in words],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**variables, **environment},
    )


def succeed(words, folder, **environment):
    done = run(words, folder, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build_wheel(folder: Path, **environment) -> Path:
    words = ["build", "--wheel", "--no-isolation", "--outdir", folder, ROOT]
    succeed([sys.executable, "-m", *words], folder, **environment)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """An environment with the wheel; its root."""
    root = tmp_path_factory.mktemp("installed")
    succeed([sys.executable, "-m", "venv", "--without-pip", root], root)
    words = ["pip", "--python", root / "bin" / "python", "install", "--no-deps", "--no-index"]
    succeed([sys.executable, "-m", *words, wheel], root)
    (packages,) = root.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(DEPENDENCIES + "\n")
    return root


@pytest.fixture
def python(installed):
    """Run Python code in the environment, in an empty folder, and return what it prints."""

    def execute(code, folder):
        return succeed([installed / "bin" / "python", "-P", "-c", code], folder).strip()

    return execute


def names_in(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_everything_is_in_the_wheel_once(wheel):
    names = names_in(wheel)
    assert len(names) == len(set(names))
    sources = [path for name in PACKAGES for path in (ROOT / "src" / name).rglob("*")]
    expected = {
        str(path.relative_to(ROOT / "src"))
        for path in sources
        if path.is_file() and "__pycache__" not in path.parts
    }
    for folder in ("proofs", "certificates"):
        suffixes = (".py", ".json", ".v")
        paths = [path for path in (ROOT / folder).rglob("*") if path.suffix in suffixes]
        assert paths
        expected |= {
            f"convattn_ledger/_{folder}/{path.relative_to(ROOT / folder)}" for path in paths
        }
    assert expected <= set(names)
    for needed in (
        "convattn/py.typed",
        "convattn_check/py.typed",
        "convattn/data/PROVENANCE.md",
    ):
        assert needed in names


def test_nothing_else_is_in_the_wheel(wheel):
    tops = {name.split("/")[0] for name in names_in(wheel)}
    assert tops == {*PACKAGES, "convattn-0.1.0.dist-info"}
    unwanted = ("__pycache__", "/test", ".vo", ".glob")
    assert not [name for name in names_in(wheel) if any(part in name for part in unwanted)]


def test_the_packages_come_from_the_wheel(installed, python, tmp_path):
    code = "import convattn, convattn_check as c; print(convattn.__file__, c.__file__, sep='\\n')"
    for place in python(code, tmp_path).splitlines():
        assert Path(place).is_relative_to(installed)
    outside = "import sys; print([p for p in sys.path if p.startswith(sys.argv[1])])"
    words = [installed / "bin" / "python", "-P", "-c", outside, ROOT / "src"]
    assert succeed(words, tmp_path).strip() == "[]"


def test_the_data_come_along(python, tmp_path):
    code = (
        "from convattn.data import load_cifar10_slice\n"
        "images = load_cifar10_slice('test').images\n"
        "print(images.shape, int(images.astype(int).sum()))"
    )
    from convattn.data import load_cifar10_slice

    total = int(load_cifar10_slice("test").images.astype(int).sum())
    assert python(code, tmp_path) == f"(500, 32, 32, 3) {total}"


def test_check_accepts_the_installed_certificates(installed, tmp_path):
    count = len(list((ROOT / "certificates").glob("*.json")))
    output = succeed([installed / "bin" / "convattn", "check"], tmp_path)
    assert output.splitlines()[-1] == f"{count} accepted, 0 rejected"
    assert str(installed) in output
    assert str(ROOT) not in output


def test_verify_runs_the_installed_proofs(installed, tmp_path):
    """A claim's certificates and its layers on the bundled images, by `python -m`."""
    words = ["-m", "convattn.cli", "verify", "--quick", "--claim", "S.finite", "--jobs", "1"]
    output = succeed([installed / "bin" / "python", "-P", *words], tmp_path)
    assert "1 claim, verdicts: 1 holds; evidence: " in output
    assert "7 accepted" in output
    assert "float16 error" in output


def test_a_certificate_that_is_spoiled_after_installation_is_noticed(installed, tmp_path):
    (folder,) = installed.glob("lib/python*/site-packages/convattn_ledger/_certificates")
    path = folder / "S.finite-K3-P1.json"
    original = path.read_bytes()
    try:
        path.write_bytes(original.replace(b'"heads":10', b'"heads":11'))
        done = run([installed / "bin" / "convattn", "check"], tmp_path)
        words = ["verify", "--claim", "S.finite", "--level", "CERTIFIED", "--jobs", "1"]
        verified = run([installed / "bin" / "convattn", *words], tmp_path)
    finally:
        path.write_bytes(original)
    assert done.returncode == 1
    assert "1 rejected" in done.stdout
    assert verified.returncode == 1
    assert "rejected (digest)" in " ".join(verified.stdout.split())


def test_the_checker_runs_without_the_dependencies(installed, tmp_path):
    (packages,) = installed.glob("lib/python*/site-packages")
    path = next((packages / "convattn_ledger" / "_certificates").glob("*.json"))
    words = [installed / "bin" / "python", "-S", "-P", "-m", "convattn_check", path]
    done = run(words, tmp_path, PYTHONPATH=str(packages))
    assert done.returncode == 0, done.stdout + done.stderr
    without = run([*words[:3], "-c", "import jax"], tmp_path, PYTHONPATH=str(packages))
    assert "No module named 'jax'" in without.stderr


def test_the_wheel_is_the_same_bytes_when_it_is_built_again(wheel, tmp_path):
    again = build_wheel(tmp_path, TZ="Asia/Tokyo", LC_ALL="C", PYTHONHASHSEED="7")
    assert again.read_bytes() == wheel.read_bytes()
