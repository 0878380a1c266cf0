"""The line of progress: a bar on a terminal, few lines in a log, nothing when nothing is to be shown."""

from nashcast.cli.shared import progress
from nashcast.cli.shared.progress import Progress


class Clock:
    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


def shown(monkeypatch, capsys, terminal, calls, visible=True):
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal, raising=False)
    bar = Progress(visible)
    for seconds, *call in calls:
        clock.now = 100.0 + seconds
        bar(*call)
    return capsys.readouterr().err


CALLS = [(0, "runs", 0, 100), (1, "runs", 10, 100), (2, "runs", 20, 100), (10, "runs", 100, 100)]


def test_a_bar_with_the_time_left_and_a_clean_end(monkeypatch, capsys):
    text = shown(monkeypatch, capsys, True, CALLS)
    assert "[██████                        ] runs: 20 of 100, 0:08 left" in text
    assert text.endswith("\r\x1b[K")


def test_a_log_gets_few_lines(monkeypatch, capsys):
    assert shown(monkeypatch, capsys, False, CALLS) == "runs: 0 of 100\nruns: 100 of 100\n"


def test_the_pace_is_that_of_this_part_and_of_this_session(monkeypatch, capsys):
    calls = [(0, "one", 0, 10), (5, "one", 10, 10), (5, "two", 50, 100), (7, "two", 60, 100)]
    assert "two: 60 of 100, 0:08 left" in shown(monkeypatch, capsys, True, calls)


def test_nothing_where_nothing_is_to_be_shown(monkeypatch, capsys):
    assert shown(monkeypatch, capsys, True, CALLS, visible=False) == ""
