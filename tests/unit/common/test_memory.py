"""Memory that a process keeps."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import ctypes, sys
from elmo_framework.common.memory import keep_freed_memory

def held():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

if sys.argv[1] == "keep":
    keep_freed_memory()
size = 200 * 1024 * 1024
library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
library.malloc.argtypes = [ctypes.c_size_t]
library.free.argtypes = [ctypes.c_void_p]
block = library.malloc(size)
ctypes.memset(block, 1, size)
library.free(block)
print(held() > size)
"""


def keeps(choice: str) -> str:
    command = [sys.executable, "-c", _PROGRAM, choice]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_what_is_freed_stays_with_the_process_when_asked_for() -> None:
    assert keeps("keep") == "True"
    assert keeps("not") == "False"
