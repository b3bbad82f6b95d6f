from dataclasses import replace

from lab.analysis.synthetic_runs import write_run

from convattn.lab.analysis.run_summary import Pruning, title_of


def test_a_title_says_whose_accuracy_it_is(tmp_path) -> None:
    run = write_run(tmp_path / "last")
    assert title_of(run, "x", 4) == title_of(run, "x")
    assert "parameters of" not in title_of(run, "x")
    assert (
        "\nrun last: test accuracy 25.0 % (125 of 500) with the parameters of epoch 4, CIFAR"
        in title_of(run, "x", 0)
    )
    best = write_run(tmp_path / "best", select="best", validation=(0.1, 0.4, 0.1, 0.1))
    assert "parameters of" not in title_of(best, "x", 2)
    assert "with the parameters of epoch 2" in title_of(best, "x")
    assert "with the parameters of epoch 2" in title_of(best, "x", 4)
    young = write_run(tmp_path / "young", finished=False, select="best")
    assert "\nrun young: unfinished, epoch 4 of 4, CIFAR" in title_of(young, "x", 0)


def test_what_was_pruned_otherwise_is_named() -> None:
    source = {"config": {"seed": 0}, "result": {}, "images_sha256": "a"}
    plan = Pruning(source, {"largest": 1e-5}, [[1]], [2], 300, 0.9)
    assert plan.differences(replace(plan, pruned=0.1, after=0.2)) == []
    others = {"config": {"seed": 1}, "result": {"seconds": 1}, "images_sha256": "b"}
    assert plan.differences(replace(plan, source=others, kept=[[2]], epochs_before=9)) == [
        "kept",
        "epochs_before",
        "source.config",
        "source.images_sha256",
    ]
