"""What a hub's run has forecast so far, on disk: what was written is there, and a torn row is none."""

import numpy as np
import pytest

from nashcast import NashcastError
from nashcast.remote.hub.lookback.step_log import StepLog

N, P, WIDTH = 3, 2, 2 + 3 + 6 + 3 + 2


def row(t):
    rng = np.random.default_rng(t)
    present = rng.random(N) < 0.5
    return rng.random(P), rng.random(N), rng.random((N, P)), present, bool(t % 3), rng.random()


def write(path, steps):
    log = StepLog(path, N, P)
    for t in range(steps):
        log.append(*row(t))
    return log


def assert_holds(log, steps):
    rows = log.rows()
    assert len(rows.forecasts) == steps
    for t in range(steps):
        for one, other in zip([part[t] for part in rows], row(t), strict=True):
            np.testing.assert_array_equal(one, other)
    assert rows.present.dtype == bool


def test_rows_come_back_to_the_bit_without_being_closed(tmp_path):
    log = write(tmp_path / "steps", 7)
    assert_holds(log, 7)
    again = StepLog(tmp_path / "steps", N, P)
    assert_holds(again, 7)
    again.close()
    assert (tmp_path / "steps").stat().st_size == 7 * WIDTH * 8
    log.close()


@pytest.mark.parametrize("torn", [0, 1, 8, WIDTH * 8 - 1])
def test_what_was_torn_or_done_again_is_cut(tmp_path, torn):
    path = tmp_path / "steps"
    write(path, 5).close()
    with path.open("ab") as file:
        file.write(b"x" * torn)
    log = StepLog(path, N, P)
    log.cut(4)
    assert_holds(log, 4)
    log.append(*row(4))
    assert_holds(log, 5)
    log.close()


def test_fewer_rows_than_steps_are_no_run_to_go_on_with(tmp_path):
    log = write(tmp_path / "steps", 3)
    with pytest.raises(NashcastError, match=r"has 3 steps, but the run is at step 4\. Begin anew: --fresh"):
        log.cut(4)
    assert_holds(log, 3)
    log.close()
