"""Files of the suite: the same bytes, kept, written again, and what is refused."""

import json

import numpy as np
import pytest

from convattn.compile.transformer import CompiledTransformer
from convattn.known_answers import NETWORKS, recorded_digests, write_suite
from convattn.known_answers import suite as module
from convattn.networks.weights.formats import read_safetensors

SOME = NETWORKS[:2]
FILES = [f"{n:02}-{network.name}" for n, network in enumerate(SOME, 1)]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    directory = tmp_path_factory.mktemp("suite")
    return directory, write_suite(directory, SOME)


def test_the_bytes_are_those_of_this_version(written) -> None:
    directory, digests = written
    recorded = recorded_digests()
    assert digests == {name: recorded[name] for name in digests}
    expected = [f"{name}{end}" for name in FILES for end in (".safetensors", ".truth.safetensors")]
    assert sorted(path.name for path in directory.iterdir()) == sorted(
        [*expected, "index.html", "suite.json"]
    )


@pytest.mark.slow
def test_all_bytes_are_those_of_this_version(tmp_path) -> None:
    assert write_suite(tmp_path) == recorded_digests()


def test_an_interrupted_run_goes_on_and_mends_what_is_damaged(written) -> None:
    directory, digests = written
    page, index = ((directory / name).read_bytes() for name in ("index.html", "suite.json"))
    damaged = directory / f"{FILES[1]}.truth.safetensors"
    damaged.write_bytes(b"cut short")
    (directory / "index.html").unlink()
    left = directory / f".{FILES[0]}.safetensors.abcdefgh.part"  # by a process that was killed
    left.write_bytes(b"")
    lines: list[str] = []
    assert write_suite(directory, SOME, lines.append) == digests
    assert [line.split(": ")[1].split(";")[0] for line in lines] == ["kept", "written"]
    assert page == (directory / "index.html").read_bytes()
    assert index == (directory / "suite.json").read_bytes()
    left.unlink()


def test_the_truth_has_values_fields_and_jacobians(written) -> None:
    directory, _ = written
    name = f"{FILES[0]}.truth.safetensors"
    arrays, metadata = read_safetensors((directory / name).read_bytes(), name)
    facts = json.loads(metadata["truth"])
    assert facts["values"] == {"value1": 1}
    head = {"kind": "offset", "where": [-1, 1], "border": "zeros", "every": [1, 1]}
    assert facts["heads"][0][0] == head
    assert arrays["images"].shape == (4, 1, 8, 8)
    assert arrays["value1.jacobian"].shape == (64, 1, 1, 8, 8)
    assert arrays["logits.jacobian"].shape == (4, 2, 1, 8, 8)
    expected = np.asarray(SOME[0].function(SOME[0].example()))
    assert np.abs(arrays["logits"] - expected).max() <= 2.0**-22 * np.abs(expected).max()
    index = json.loads((directory / "suite.json").read_text())
    assert [entry["name"] for entry in index] == [network.name for network in SOME]


def test_the_page_shows_every_head_and_asks_for_no_other_file(written) -> None:
    directory, _ = written
    page = (directory / "index.html").read_text()
    assert page.count("<h2") == 2
    assert "offset (-1, 1)" in page
    assert "src=" not in page
    assert page.count("<svg") == page.count("<figure>")


def test_a_directory_of_something_else_is_refused(tmp_path) -> None:
    (tmp_path / "thesis.tex").write_text("my work")
    with pytest.raises(ValueError, match=r"holds 'thesis\.tex'.*name another one"):
        write_suite(tmp_path, SOME)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(ValueError, match="is a file, but expected a directory"):
        write_suite(tmp_path / "thesis.tex", SOME)


def test_what_is_outside_its_bound_is_not_written(tmp_path, monkeypatch) -> None:
    call = module.to_vision_transformer

    def off(*args, **options):
        compiled = call(*args, **options)
        compiled.timm["head.bias"] += 1.0
        report = CompiledTransformer.compared(compiled, args[0], args[1])
        object.__setattr__(compiled, "report", report)
        return compiled

    monkeypatch.setattr(module, "to_vision_transformer", off)
    with pytest.raises(ValueError, match="shift failed its comparison"):
        write_suite(tmp_path, SOME[:1])
    assert not list(tmp_path.iterdir())
