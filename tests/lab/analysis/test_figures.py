import sys
from dataclasses import replace

import pytest
from lab.analysis.synthetic_runs import TINY, write_run

from convattn.diagnosis.picture import new_figure
from convattn_lab.analysis import figures
from convattn_lab.analysis.figures import draw_all, fitting_pictures
from convattn_lab.models.settings import ResNetSettings

CURVES, SHARED = {"curves"}, {"curves", "attention-position", "convolution"}


def names(paths) -> set[str]:
    assert all(path.exists() for path in paths)
    assert [path.suffix for path in paths].count(".png") == len(paths) // 2
    return {path.stem for path in paths}


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (TINY, {*SHARED, "centers", "motion-layer2"}),
        (replace(TINY, encoding="gaussian", heads=(1,) * 5), {*SHARED, "centers", "motion-layer4"}),
        (replace(TINY, encoding="learned"), SHARED),
        (replace(TINY, encoding="content"), SHARED),
        (ResNetSettings(), CURVES),
    ],
)
def test_what_fits_the_model_is_known(tmp_path, model, expected) -> None:
    assert set(fitting_pictures(write_run(tmp_path / "run", model))) == expected


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_what_fits_the_model_is_drawn(tmp_path, capsys) -> None:
    run = write_run(tmp_path / "run")
    paths = draw_all(run)
    assert names(paths) == set(fitting_pictures(run))
    assert {path.parent for path in paths} == {run / "figures"}
    assert capsys.readouterr().err == ""


def test_what_cannot_be_drawn_does_not_stop_the_rest(tmp_path, monkeypatch, capsys) -> None:
    def fail(path):
        raise RuntimeError("a\ndefect")

    pictures = {"centers": fail, "curves": lambda path: new_figure(1, 1)}
    monkeypatch.setattr(figures, "fitting_pictures", lambda path: pictures)
    assert names(draw_all(tmp_path)) == CURVES
    assert capsys.readouterr().err == f"no picture centers of {tmp_path}: a defect\n"


def test_a_folder_that_is_no_run_has_nothing(tmp_path, capsys) -> None:
    assert draw_all(tmp_path) == []
    assert "not the folder of a run" in capsys.readouterr().err


def test_without_matplotlib_nothing_is_drawn_and_nothing_fails(
    tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert draw_all(write_run(tmp_path / "run")) == []
    assert "pip install 'convattn[plot]'" in capsys.readouterr().err
