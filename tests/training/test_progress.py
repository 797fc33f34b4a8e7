"""What users see of a training: percent and time left in 80 columns, honest speeds, lines in a file."""

import io
import re
import time

import numpy as np
import pytest
from rich.console import Console

from sentinel_rl.training import progress
from sentinel_rl.training.compiled import Progress
from sentinel_rl.training.history import History
from sentinel_rl.training.progress import Pace, progress_bar


class Clock:
    """A clock that the test sets."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def after(t, steps=100_000, seeds=(0,), metrics=("loss",), episodes=3):
    """The progress of runs that have reached step ``t``, with some episodes of 40 steps."""
    history = History(len(seeds), steps, 5, 0.99)
    for _ in range(episodes):
        ended = np.zeros((len(seeds), 40), bool)
        ended[:, -1] = True
        history.extend(np.ones((len(seeds), 40)), ended, np.zeros_like(ended))
    return Progress(t, steps, list(seeds), history, {name: np.zeros((len(seeds), 1)) for name in metrics})


def console(width=80, terminal=True):
    stream = io.StringIO()
    return Console(file=stream, force_terminal=terminal, width=width, highlight=False, color_system=None), stream


def frames(stream):
    """The lines that a terminal showed one after the other, without what moves the cursor."""
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", stream.getvalue())
    return [line.rstrip() for line in re.split(r"[\r\n]+", text) if line.strip()]


def shown(*reports, steps=100_000, runs=1, width=80, terminal=True):
    """What is printed for reports ``(seconds, progress)``."""
    on, stream = console(width, terminal)
    clock = Clock()
    with progress_bar(steps, runs, console=on, clock=clock) as show:
        for seconds, progress in reports:
            clock.now = 100.0 + seconds
            show(progress)
    return frames(stream)


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_percent_and_time_left_are_there_at_any_width(width):
    lines = shown((20, after(2_000)), (21, after(12_000)), (22, after(22_000)), width=width)
    assert max(map(len, lines)) <= width
    assert "12%" in " ".join(lines)
    last = lines[-1]
    assert "22%" in last
    assert "0:00:08" in last, "78 000 steps at 10 000 a second"
    assert ("10,000 steps/s" in last) == (width > 40), "what does not fit is left out"
    assert ("3 terminated" in last) == (width >= 100)


def test_a_bar_says_that_it_compiles():
    assert "compiling (once; cached for the next time)" in shown((20, after(2_000)))[0]
    (first, *_) = shown()
    assert "0%" in first
    assert "-:--:--" in first


def test_a_short_run_has_a_speed():
    """Of one chunk all is known that there is; it was shown as 0 steps/s."""
    last = shown((4, after(1_000, 1_000)), steps=1_000)[-1]
    assert "250 steps/s" in last
    assert "100%" in last
    assert "0:00:00" in last


def test_many_runs_side_by_side_count_together():
    reports = (10, after(1_000, 4_000, range(5))), (11, after(2_000, 4_000, range(5)))
    last = shown(*reports, steps=4_000, runs=5)[-1]
    assert "5,000 steps/s" in last
    assert " 50%" in last
    assert "15 episodes" in shown(*reports, steps=4_000, runs=5, width=120)[-1]


def pace_after(total, *reports):
    clock = Clock()
    pace = Pace(total, clock)
    for seconds, report in reports:
        clock.now = 100.0 + seconds
        pace.report(report)
    return pace


def test_compiling_is_no_part_of_the_speed_once_there_is_a_second_chunk():
    first = (30, after(2_000))
    assert pace_after(100_000, first).speed == pytest.approx(2_000 / 30)
    assert pace_after(100_000, first, (31, after(4_000)), (32, after(6_000))).speed == pytest.approx(2_000)


def test_the_speed_is_that_of_the_latest_reports():
    slow = [(10 + i, after(100 * i)) for i in range(1, 31)]
    fast = [(40 + i, after(3_000 + 1_000 * i)) for i in range(1, 31)]
    assert pace_after(100_000, *slow).speed == pytest.approx(100)
    assert pace_after(100_000, *slow, *fast).speed == pytest.approx(1_000)


def test_steps_from_before_a_resume_are_done_but_not_made_now():
    resumed = (1, after(50_000, metrics=()))
    assert pace_after(100_000, resumed).speed is None
    assert pace_after(100_000, resumed).share == 0.5
    assert pace_after(100_000, resumed, (11, after(52_000))).speed == pytest.approx(200)
    later = pace_after(100_000, resumed, (11, after(52_000)), (12, after(54_000)))
    assert later.speed == pytest.approx(2_000)
    assert later.left == "0:00:23"


def test_runs_one_after_the_other_have_one_bar():
    done = pace_after(200, (1, after(50, 100)), (2, after(100, 100)), (3, after(50, 100, seeds=[1])))
    assert done.share == 0.75
    assert done.speed == pytest.approx(50)
    assert done.left == "0:00:01"


def test_the_time_left_in_hours():
    assert pace_after(10**9, (1, after(1, 10**9)), (2, after(1_001, 10**9))).left == "277:46:39"


def test_lines_where_there_is_no_terminal():
    reports = [(10 + 4 * i, after(1_000 * i, 20_000)) for i in range(1, 21)]
    lines = shown(*reports, steps=20_000, terminal=False)
    assert lines[0] == "training: compiling (once; cached for the next time)"
    assert len(lines) == 1 + 10, "one at every tenth"
    expected = "training: 10%, 2,000 of 20,000 steps, 250 steps/s, return 40.0, 3 episodes, 3 terminated, 0:01:12 left"
    assert lines[1] == expected
    assert lines[-1].startswith("training: 100%, 20,000 of 20,000 steps")
    assert lines[-1].endswith("0:00:00 left")


def test_lines_of_a_fast_training_do_not_flood_a_file():
    lines = shown(*[(0.1 * i, after(1_000 * i, 20_000)) for i in range(1, 21)], steps=20_000, terminal=False)
    assert [line.split(",")[0] for line in lines[1:]] == ["training: 100%"]


def test_nothing_is_shown_when_nobody_wants_to_see_it(capfd):
    with progress_bar(100, shown=False) as show:
        show(after(100, 100))
    assert capfd.readouterr() == ("", "")


def test_a_terminal_is_told_of_compiling_that_takes_long(monkeypatch):
    monkeypatch.setattr(progress, "_PATIENCE", 0.01)
    for shown, terminal, expected in ((None, True, 1), (None, False, 0), (False, True, 0)):
        on, stream = console(terminal=terminal)
        with progress_bar(100, shown=shown, console=on) as show:
            time.sleep(0.2)
            show(after(50))
        assert frames(stream) == ["sentinel-rl: compiling (once; cached for the next time)"] * expected
    monkeypatch.setattr(progress, "_PATIENCE", 60.0)
    on, stream = console()
    with progress_bar(100, shown=None, console=on) as show:
        show(after(50))
    assert frames(stream) == []


def test_standard_error_is_where_it_goes(capfd):
    with progress_bar(100) as show:
        show(after(100, 100))
    out, err = capfd.readouterr()
    assert out == ""
    assert err.splitlines()[-1].startswith("training: 100%, 100 of 100 steps")
