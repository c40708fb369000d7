import contextlib
import io
import itertools

import pytest

from elmo_framework import console
from elmo_framework.console import ProgressBar, plural, plural_of, render_table


class Clock:
    """Time that passes only when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(console, "time", clock)
    return clock


def lines_of_work(clock: Clock, *, seconds: float, steps: int) -> list[str]:
    """What is written while each of some steps takes so long."""
    stream = io.StringIO()
    with ProgressBar("training", total=10 * steps, unit="token", stream=stream) as progress:
        for step in range(steps):
            clock.now += seconds
            progress.advance(10, note=f"loss {step}")
    return stream.getvalue().splitlines()


def test_first_and_last_line_are_written_without_terminal(clock: Clock) -> None:
    assert lines_of_work(clock, seconds=0.5, steps=4) == [
        "training: 40 tokens ...",
        "training: 40/40 tokens (100 %), 20 tokens/s in 0:00:02; loss 3",
    ]


def test_work_that_ends_before_the_delay_shows_nothing(clock: Clock) -> None:
    stream = io.StringIO()
    with ProgressBar("embedding", total=20, stream=stream, delay=5) as progress:
        clock.now += 4
        progress.advance(10)
        assert stream.getvalue() == ""
    assert stream.getvalue() == ""


def test_delayed_progress_counts_from_the_start(clock: Clock) -> None:
    stream = io.StringIO()
    with ProgressBar("embedding", total=20, unit="line", stream=stream, delay=5) as progress:
        for _ in range(5):
            clock.now += 2
            progress.advance(4)
    assert stream.getvalue().splitlines() == [
        "embedding: 20 lines ...",
        "embedding: 20/20 lines (100 %), 2 lines/s in 0:00:10",
    ]


def test_lines_between_have_rate_and_remaining_time(clock: Clock) -> None:
    assert lines_of_work(clock, seconds=4, steps=3)[1:] == [
        "training: 20/30 tokens (66 %), 2.5 tokens/s, 0:00:04 left; loss 1",
        "training: 30/30 tokens (100 %), 2.5 tokens/s in 0:00:12; loss 2",
    ]


def test_lines_are_seldom_but_never_more_than_a_minute_apart(clock: Clock) -> None:
    lines = lines_of_work(clock, seconds=1, steps=7200)
    done = [int(line.split()[1].split("/")[0].replace(",", "")) // 10 for line in lines[1:-1]]
    apart = [later - earlier for earlier, later in itertools.pairwise(done)]
    assert min(apart) >= 5
    assert max(apart) == 60


def test_one_unit_is_singular(clock: Clock) -> None:
    stream = io.StringIO()
    with ProgressBar("evaluating", total=1, unit="batch", stream=stream) as progress:
        clock.now += 0.5
        progress.advance()
    assert stream.getvalue().splitlines() == [
        "evaluating: 1 batch ...",
        "evaluating: 1/1 batch (100 %), 2 batches/s in 0:00:00",
    ]


def test_what_came_before_a_restart_of_the_clock_is_left_out(clock: Clock) -> None:
    stream = io.StringIO()
    with ProgressBar("training", total=10, unit="step", stream=stream) as progress:
        clock.now += 3600
        progress.restart_clock()
        clock.now += 10
        progress.advance(1)
    assert stream.getvalue().splitlines()[1] == (
        "training: 1/10 steps (10 %), 0.1 steps/s, 0:01:30 left"
    )


def test_the_last_line_is_written_when_the_work_fails(clock: Clock) -> None:
    stream = io.StringIO()
    progress = ProgressBar("training", unit="token", stream=stream)
    with contextlib.suppress(KeyError), progress:
        progress.advance(3)
        raise KeyError
    assert stream.getvalue() == ("training: ...\ntraining: 3 tokens, 0 tokens/s in 0:00:00\n")


def test_on_a_terminal_a_bar_is_drawn() -> None:
    stream = Terminal()
    with ProgressBar("training", total=10, unit="token", stream=stream) as progress:
        progress.advance(10, note="loss 3.2")
    shown = stream.getvalue()
    assert "training" in shown
    assert "10/10 tokens (100 %)" in shown
    assert "loss 3.2" in shown


def test_info_writes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    console.info("hello")
    assert capsys.readouterr() == ("", "hello\n")


def test_numbers_are_right_aligned_and_text_is_left_aligned() -> None:
    rows = [("f1", "0.5", "-"), ("accuracy", "12.25", "1,000")]
    assert render_table(("name", "score", "n"), rows) == "\n".join(
        [
            "name      score      n",
            "--------  -----  -----",
            "f1          0.5      -",
            "accuracy  12.25  1,000",
        ]
    )


def test_the_last_column_is_wrapped_to_the_width() -> None:
    rows = [("key", "a meaning that is longer than the thirty places it has")]
    assert render_table(("key", "meaning"), rows, width=20) == "\n".join(
        [
            "key  meaning",
            "---  -----------------------------",
            "key  a meaning that is longer than",
            "     the thirty places it has",
        ]
    )


def test_wide_characters_count_as_two_columns() -> None:
    assert render_table(("label", "n"), [("地名", "3"), ("person", "12")]) == "\n".join(
        ["label    n", "------  --", "地名     3", "person  12"]
    )


def test_a_table_without_rows_has_its_headers() -> None:
    assert render_table(("a", "bc"), []) == "a  bc\n-  --"


def test_one_is_singular_and_all_others_are_plural() -> None:
    assert plural(1, "sentence") == "1 sentence"
    assert plural(0, "sentence") == "0 sentences"
    assert plural(1200, "more line") == "1,200 more lines"


def test_a_sibilant_takes_another_ending() -> None:
    assert plural(2, "batch") == "2 batches"
    assert plural_of("loss") == "losses"
