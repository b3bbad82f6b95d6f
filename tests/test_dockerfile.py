"""The Dockerfile, the workflows and .ci/run agree, and run what is there."""

import re
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
CI = (ROOT / ".ci" / "run").read_text("utf-8")
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
TARGETS = {*re.findall(r"(?m)^([a-z-]+):", MAKEFILE)}
WORKFLOWS = {
    path.stem: yaml.safe_load(path.read_text("utf-8"))
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
}


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def make_targets(text):
    """The targets that some commands make."""
    lines = re.findall(r"(?m)(?:^|RUN |convattn )make ([a-z -]+)", text)
    return {target for line in lines for target in line.split()}


def packages(text):
    """The packages of Debian that are named: all words from `coq` to `chromium`."""
    return re.search(r"\bcoq [a-z0-9 -]+ chromium\b", text)[0].split()


def test_the_image_has_the_packages_of_ci_and_runs_its_steps():
    assert packages(DOCKERFILE) == packages(CI)
    assert "\nRUN .ci/run\n" in DOCKERFILE
    command = re.search(r'CMD \["make", "(\w+)"\]', DOCKERFILE)[1]
    assert make_targets(DOCKERFILE) - {"install"} | {command} <= make_targets(CI) <= TARGETS
    with pytest.raises(AssertionError):
        assert packages(DOCKERFILE.replace(" libcoq-interval", "")) == packages(CI)


def test_what_make_note_and_its_page_ask_for_is_installed():
    named = re.search(r"(?m)^TEXLIVE := (.+)$", MAKEFILE)[1].split()
    page = (ROOT / "docs" / "note.md").read_text("utf-8")
    assert {*named} == {*re.findall(r"texlive[a-z-]*", page)}
    assert {*named} == {name for name in packages(CI) if name.startswith("texlive")}


@pytest.mark.parametrize("name", ["ci", "docs", "release"])
def test_workflows_run_what_is_there_with_pinned_actions(name):
    workflow = WORKFLOWS[name]
    for step in steps(workflow):
        if "uses" in step:
            assert re.fullmatch(r"[\w.-]+/[\w.-]+@v\d+\.\d+\.\d+", step["uses"])
        for word in step.get("run", "").split():
            if re.match(r"(?:\.ci|tests|scripts)/", word):
                assert (ROOT / word).exists()
        assert make_targets(step.get("run", "")) <= TARGETS
    assert workflow["permissions"] == {"contents": "read"}


def test_the_workflows_run_ci_in_the_same_image_and_build_the_site():
    assert f"FROM {WORKFLOWS['ci']['jobs']['run']['container']} " in DOCKERFILE
    assert ".ci/run" in str(steps(WORKFLOWS["ci"]))
    assert "make docs" in str(steps(WORKFLOWS["docs"]))


def test_a_release_waits_for_a_person_and_needs_no_password():
    job = WORKFLOWS["release"]["jobs"]["publish"]
    assert job["if"] == "vars.PUBLISH == 'true'"
    assert job["environment"] == "pypi"
    assert job["permissions"] == {"id-token": "write"}
    assert "password" not in str(job)
    assert WORKFLOWS["release"][True] == {"push": {"tags": ["v*"]}}  # YAML reads `on` as true


TORCH = re.compile(r'torch_package\(|importorskip\("(?:torch|onnx|jax2onnx)|find_spec\("torch"\)')
TORCH_TESTS = [
    ROOT / name
    for name in re.sub(
        r"\$\(patsubst %,(\S+),([^)]*)\)",
        lambda match: " ".join(match[1].replace("%", name) for name in match[2].split()),
        re.search(r"(?m)^TORCH_TESTS := ((?:.*\\\n)*.*)$", MAKEFILE)[1].replace("\\\n", " "),
    ).split()
]


def not_listed(listed):
    """The tests that need PyTorch and stand in no file or folder of a list."""
    return [
        path
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if TORCH.search(path.read_text("utf-8"))
        and not {path, *path.parents} & {*listed}
        and path.name != Path(__file__).name
    ]


def test_make_torch_runs_every_test_that_needs_pytorch():
    assert all(path.exists() for path in TORCH_TESTS)
    assert not_listed(TORCH_TESTS) == []
    assert not_listed(TORCH_TESTS[:2]) == sorted(
        path for path in TORCH_TESTS[2:] if path.suffix == ".py"
    )
