import json
import sys

import bench
import pytest
from benchmarks.cases import CASES
from benchmarks.implementations import Implementation
from benchmarks.measurement import Memory, Runner
from benchmarks.plot import figure_bytes
from benchmarks.rounds import compiled, rounds, too_much
from benchmarks.settings import GIB, Settings
from experiments.synthetic_rows import row

from convattn.cli.running import UsageError
from convattn.fast.selection import BACK_ENDS

TINY = Settings(sizes=(2,), dims=(3,), turns=2, turn_seconds=0.0, resident_from=None)


def bench_arguments(*options):
    return bench.settings_from(bench.arguments().parse_args(options))


def test_defaults_are_those_of_the_settings() -> None:
    settings = bench_arguments()
    assert settings == Settings()
    assert settings.turns >= 7


def test_options_reach_the_settings_and_quick_gives_way_to_them() -> None:
    settings = bench_arguments("--quick", "--sizes", "5", "--dtype", "bfloat16", "--batch", "2")
    assert (settings.sizes, settings.batch, settings.dtype) == ((5,), 2, "bfloat16")
    assert (settings.precision, settings.resident_from) == ("default", None)
    assert settings.dims == bench.QUICK["dims"]
    limits = bench_arguments("--memory-limit", "2", "--backends", "dense", "auto")
    assert (limits.memory_limit, limits.back_ends) == (2 * GIB, ("dense", "auto"))


@pytest.mark.slow
def test_everybody_competes_on_the_quadratic_encoding() -> None:
    names = {column.name for column in CASES["quadratic"].implementations(4, 3, TINY)}
    assert names - {"torch"} == {
        *BACK_ENDS,
        "auto",
        "grid",
        "plain dense",
        "lax.conv",
        "maps alone",
    }


def test_back_ends_that_are_not_asked_for_stay_away() -> None:
    settings = Settings(back_ends=("dense",))
    names = {column.name for column in CASES["quadratic"].implementations(4, 3, settings)}
    assert names - {"torch"} == {"dense", "plain dense", "lax.conv", "maps alone"}


def test_auto_says_whom_it_chose_and_refusals_keep_their_reason() -> None:
    by_name = {column.name: column for column in CASES["content"].implementations(4, 3, TINY)}
    assert by_name["auto"].chose in BACK_ENDS
    assert by_name["auto"].work == by_name[by_name["auto"].chose].work
    assert by_name["separable"].refusal is not None
    assert by_name["separable"].work is None
    assert by_name["dense"].pair_bytes == 3 * 4 * 9 * 16 * 16


def implementation(**fields):
    return Implementation("dense", lambda: Runner(lambda n: None, lambda n: None, None), **fields)


def test_who_is_expected_to_exceed_a_limit_is_not_compiled() -> None:
    settings = Settings(memory_limit=2.0 * GIB, time_limit=10.0)
    assert too_much(implementation(pair_bytes=2.0 * GIB), [], 64, settings) is None
    assert "3 GiB" in (too_much(implementation(pair_bytes=3.0 * GIB), [], 64, settings) or "")
    assert too_much(implementation(), [(32 * 32, 0.5)], 64, settings) is None
    assert "16 s a turn" in (too_much(implementation(), [(32 * 32, 1.0)], 64, settings) or "")


def test_who_plans_too_much_memory_is_compiled_but_not_run() -> None:
    runner = Runner(lambda n: None, lambda n: None, Memory(GIB, GIB, GIB))
    chunked = Implementation("chunked", lambda: runner)
    assert compiled(chunked, Settings(memory_limit=3.0 * GIB)) is runner
    assert compiled(chunked, Settings(memory_limit=2.9 * GIB)) == "XLA plans 3.0 GiB"

    def fails():
        raise MemoryError("cannot allocate\nmore")

    failing = Implementation("chunked", fails)
    assert compiled(failing, Settings()) == "does not compile: cannot allocate"


@pytest.mark.slow
def test_a_round_has_a_row_for_everybody_and_its_times() -> None:
    settings = Settings(
        sizes=(2,),
        dims=(3,),
        turns=2,
        turn_seconds=0.0,
        resident_from=None,
        cases=("content",),
        back_ends=("dense", "separable", "auto"),
    )
    (rows,) = rounds(settings)
    by_name = {entry.contestant: entry for entry in rows}
    assert list(by_name) == ["dense", "separable", "auto", "plain dense", "lax.conv"]
    assert by_name["separable"].skipped is not None
    assert by_name["separable"].backward == []
    for name in ("dense", "auto", "plain dense", "lax.conv"):
        timed = by_name[name]
        assert (timed.case, timed.side, timed.features, timed.skipped) == ("content", 2, 3, None)
        assert len(timed.forward) == len(timed.backward) == 2
        assert min(timed.forward + timed.backward) > 0
        assert timed.memory is not None
        assert timed.resident is None


@pytest.mark.slow
def test_main_prints_and_writes(tmp_path, monkeypatch, capsys) -> None:
    path = tmp_path / "out" / "bench.json"
    options = ["--cases", "content", "--backends", "dense", "--quick", "--sizes", "2", "--dims"]
    options += ["3", "--no-resident", "--date", "1970-01-01", "--json", str(path)]
    path.parent.mkdir()
    monkeypatch.setattr(sys, "argv", ["bench.py", *options])
    bench.main()
    printed = capsys.readouterr().out
    assert "content, 2² tokens, D = 3" in printed
    assert "not measured" in printed
    written = json.loads(path.read_text())
    assert written["environment"]["date"] == "1970-01-01"
    assert {"jax", "python", "processor", "cores", "backend"} <= set(written["environment"])
    assert written["settings"]["sizes"] == [2]
    assert [entry["contestant"] for entry in written["rows"]] == [
        "dense",
        "plain dense",
        "lax.conv",
    ]
    assert [file.name for file in path.parent.iterdir()] == ["bench.json"]


@pytest.mark.slow
def test_a_run_goes_on_where_it_was_stopped(tmp_path, monkeypatch, capsys) -> None:
    path = tmp_path / "bench.json"
    options = ["--cases", "finite", "resnet20", "--backends", "dense", "--quick", "--resume"]
    monkeypatch.setattr(sys, "argv", ["bench.py", *options, "--json", str(path)])
    bench.main()
    complete = json.loads(path.read_text())
    assert {entry["case"] for entry in complete["rows"]} == {"finite", "resnet20"}
    finished = [entry for entry in complete["rows"] if entry["case"] == "finite"]
    path.write_text(json.dumps({**complete, "rows": finished}))
    capsys.readouterr()
    bench.main()
    again = json.loads(path.read_text())
    assert again["rows"][: len(finished)] == finished
    assert again["peak"] == complete["peak"]
    assert len(again["rows"]) == len(complete["rows"])
    assert "finite" not in capsys.readouterr().out.partition("targets")[0]
    for entry in again["rows"]:
        if entry["contestant"] == "lax.conv":
            assert entry["over_convolution"] == [1.0, 1.0, 1.0]
            assert entry["cost"]["flops"] > 0
    monkeypatch.setattr(sys, "argv", ["bench.py", *options, "--turns", "5", "--json", str(path)])
    with pytest.raises(UsageError, match="a run with other settings"):
        bench.main()
    path.write_text("{")
    with pytest.raises(UsageError, match="is damaged"):
        bench.main()


def test_a_plot_of_another_kind_is_refused_before_anything_runs(monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["bench.py", "--plot", "bench.jpeg"])
    with pytest.raises(SystemExit):
        bench.main()
    assert "should end in .png or .svg" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(("file_format", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_figure_is_a_picture_and_the_same_every_time(file_format, start) -> None:
    pytest.importorskip("matplotlib")
    rows = [
        row(name, seconds * side, side=side, memory=Memory(2**20, 0, side))
        for name, seconds in (("auto", 1.0), ("lax.conv", 0.5))
        for side in (16, 32)
    ]
    content = figure_bytes(rows, file_format)
    assert content.startswith(start)
    assert content == figure_bytes(rows, file_format)
    assert content != figure_bytes(rows[:2], file_format)
