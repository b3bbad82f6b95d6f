"""The best parameters: one that was replaced is not needed, one that was damaged is missed."""

import jax
import jax.numpy as jnp
import pytest
from lab.training.test_checkpoints import assert_same, state

from convattn.lab.training.best import BestParameters


@pytest.fixture
def like():
    return state()


def kept(folder, *offers):
    """After these offers of (step, accuracy), each of another state: the records."""
    best, records = BestParameters(folder), []
    for step, accuracy in offers:
        best.offer(state(step), step, accuracy)
        records.append(best.record)
    best.store.close()
    return records


def damage(folder, step):
    (folder / str(step) / "record" / "metadata").write_text("")


def test_the_first_of_equal_ones_is_kept(tmp_path, like):
    *_, record = kept(tmp_path, (2, 0.25), (4, 0.5), (6, 0.5), (8, 0.375))
    best = BestParameters(tmp_path)
    best.resume(record, like)
    assert best.record == {"best": 0.5, "best_step": 4}
    assert_same(best.take(like), state(4))


def test_one_that_was_replaced_before_a_crash_is_not_needed(tmp_path, like):
    """However often the run is begun again before the next checkpoint."""
    first, _ = kept(tmp_path, (2, 0.25), (4, 0.5))
    for _ in range(2):
        best = BestParameters(tmp_path)
        best.resume(first, like)
        assert best.record == {"best": -1.0, "best_step": 0}
        assert best.store.steps() == []
    best.offer(state(4), 4, 0.5)
    best.store.close()
    assert_same(best.take(like), state(4))


def test_one_that_was_announced_and_not_written_leaves_the_one_before(tmp_path, like, monkeypatch):
    first, _ = kept(tmp_path, (2, 0.25), (3, 0.125))

    def killed(*_):
        raise KeyboardInterrupt

    best = BestParameters(tmp_path)
    best.resume(first, like)
    monkeypatch.setattr(best.store, "save", killed)
    with pytest.raises(KeyboardInterrupt):
        best.offer(state(4), 4, 0.5)
    again = BestParameters(tmp_path)
    again.resume(first, like)
    assert again.record == first


@pytest.mark.parametrize("gone", [False, True])
def test_one_that_was_damaged_is_missed(tmp_path, like, gone):
    """Also when the run is begun anew a second time."""
    *_, record = kept(tmp_path, (2, 0.25), (4, 0.5))
    if gone:
        (tmp_path / "4").rename(tmp_path / "elsewhere")
    else:
        damage(tmp_path, 4)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"those of step 4 in .*, are damaged or gone"):
            BestParameters(tmp_path).resume(record, like)


def test_one_that_was_damaged_at_the_end_is_missed(tmp_path, like):
    best = BestParameters(tmp_path)
    best.offer(jax.tree.map(jnp.array, state(4)), 4, 0.5)
    best.store.close()
    damage(tmp_path, 4)
    with pytest.raises(ValueError, match="are damaged or gone"):
        best.take(like)


def test_a_run_that_begins_forgets_the_one_before(tmp_path, like):
    """Its first best one is missed though another run had reached a later one."""
    kept(tmp_path, (8, 0.5))
    BestParameters(tmp_path).resume({"best_step": 0}, like)
    (record,) = kept(tmp_path, (2, 0.25))
    damage(tmp_path, 2)
    with pytest.raises(ValueError, match="are damaged or gone"):
        BestParameters(tmp_path).resume(record, like)
