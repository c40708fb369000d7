from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from children import Children, ending_children

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
CHILD = "import os, signal; os.write(1, b'%9d' % os.getpid()); signal.pause()"
_SECONDS = 60.0
"""Far more than a process needs to end."""

PARENT = f"""
import sys
from concurrent.futures import ThreadPoolExecutor
from children import ending_children
command = [sys.executable, "-c", {CHILD!r}]
with ThreadPoolExecutor(1) as pool, ending_children() as children:
    list(pool.map(lambda _: children.run(command, output=sys.stdout), range(2)))
"""


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("SIGTERM", 143),
        ("SIGHUP", 129),
        ("SIGINT", -signal.SIGINT),
        pytest.param(
            "SIGKILL",
            -signal.SIGKILL,
            marks=pytest.mark.skipif(sys.platform != "linux", reason="needs Linux' prctl"),
        ),
    ],
)
def test_children_end_with_their_parent(name: str, code: int) -> None:
    read, write = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=write, stderr=subprocess.DEVNULL, cwd=BENCHMARKS
    ) as parent:
        os.close(write)
        child = int(os.read(read, 9))
        parent.send_signal(signal.Signals[name])
        # The end of the pipe is the end of all that could write to it; no second child has.
        has_ended, *_ = select.select([read], [], [], _SECONDS)
        if not has_ended:
            parent.kill()
            os.kill(child, signal.SIGKILL)
        written = os.read(read, 9)
    os.close(read)
    assert has_ended
    assert written == b""
    assert parent.returncode == code


def test_nothing_is_started_after_a_stop(tmp_path: Path) -> None:
    with ending_children() as children, (tmp_path / "log").open("w") as log:
        children.stop()
        assert children.run(["no-such-program"], output=log) == -signal.SIGTERM


def test_a_child_gives_its_exit_code_and_output(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as log:
        command = [sys.executable, "-c", "print('done'); raise SystemExit(3)"]
        assert Children().run(command, output=log) == 3
    assert (tmp_path / "log").read_text() == "done\n"


def test_signals_are_handled_as_before_after_the_block() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with ending_children():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before
