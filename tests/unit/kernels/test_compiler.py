"""Libraries are compiled once, and loaded from no place that others can write to."""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Callable
from pathlib import Path
from shutil import which

import pytest

from elmo_framework.errors import RunError
from elmo_framework.kernels import compiler
from elmo_framework.kernels.compiler import compiled_file
from elmo_framework.kernels.prebuilt import LEVELS, prebuilt_path

pytestmark = pytest.mark.skipif(which("cc") is None, reason="needs a C compiler")


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A function that gives 7, a private cache, and no compilers that have hung."""
    monkeypatch.setenv("ELMO_CACHE_ROOT", str(tmp_path / "cache"))
    monkeypatch.setattr(compiler, "_hung", set())
    (tmp_path / "seven.c").write_text("int seven(void) { return 7; }\n")
    return tmp_path / "seven.c"


@pytest.fixture
def num_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How often the compiler was called."""
    log = tmp_path / "calls"
    as_compiler(monkeypatch, tmp_path, f'echo >> {log}\nexec {which("cc")} "$@"')
    return lambda: len(log.read_text().splitlines()) if log.exists() else 0


def as_compiler(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> None:
    program = folder / "compiler"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("CC", str(program))


def seven(path: Path) -> int:
    return int(ctypes.CDLL(str(path)).seven())


def compile_(source: Path) -> Path:
    return compiled_file(source, fast_math=False)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_source_is_compiled_once(source: Path, num_calls: Callable[[], int]) -> None:
    first = compile_(source)
    assert num_calls() == 2  # to compile and to link
    assert compile_(source) == first
    assert num_calls() == 2
    assert seven(first) == 7


def test_changed_source_is_compiled_to_another_library(source: Path) -> None:
    first = compile_(source)
    source.write_text("int seven(void) { return 8; }\n")
    assert seven(compile_(source)) == 8
    assert first.exists()


def test_the_compiler_can_have_options(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source.write_text("int seven(void) { return SEVEN; }\n")
    monkeypatch.setenv("CC", "cc -DSEVEN=7")
    assert seven(compile_(source)) == 7


def test_folder_is_private_to_its_owner(source: Path) -> None:
    before = os.umask(0)
    try:
        path = compile_(source)
    finally:
        os.umask(before)
    assert mode(path.parent) == 0o700
    assert mode(path) & 0o077 == 0
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("damage", [b"", b"\x7fELF", None], ids=["empty", "short", "replaced"])
def test_incomplete_library_is_compiled_again(source: Path, damage: bytes | None) -> None:
    path = compile_(source)
    content = path.read_bytes()
    path.write_bytes(content[:-1] + b"x" if damage is None else damage)
    assert compile_(source) == path
    assert path.read_bytes() == content


def test_a_folder_of_another_user_is_not_used(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(RunError, match=r"is not used, since others can write to it \(owner"):
        compile_(source)


@pytest.mark.parametrize("open_mode", [0o720, 0o702])
def test_a_folder_that_others_can_write_to_is_not_used(source: Path, open_mode: int) -> None:
    folder = compile_(source).parent
    folder.chmod(open_mode)
    with pytest.raises(RunError) as caught:
        compile_(source)
    assert str(caught.value) == (
        f"{folder} is not used, since others can write to it (owner {os.getuid()}, mode "
        f"{open_mode:o}); remove it, or set ELMO_CACHE_ROOT to a folder "
        "that only you can write to"
    )


def test_a_library_that_others_can_write_to_is_not_used(source: Path) -> None:
    path = compile_(source)
    path.chmod(0o722)
    with pytest.raises(RunError, match=f"^{path} is not used"):
        compile_(source)


def test_a_symbolic_link_is_not_accepted_as_a_library(source: Path) -> None:
    path = compile_(source)
    path.rename(source.with_suffix(".so"))
    path.symlink_to(source.with_suffix(".so"))
    with pytest.raises(RunError, match=f"^{path} is not used"):
        compile_(source)


def test_library_is_synchronized_before_it_gets_its_name(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synchronized = list[tuple[str, bool]]()

    def note(path: Path) -> None:
        has_name = any((source.parent / "cache").glob("*/seven-*.so"))
        synchronized.append((path.name, has_name))

    monkeypatch.setattr(compiler, "synchronize", note)
    path = compile_(source)
    assert synchronized == [("linked.so", False), (path.parent.name, True)]


def test_hanging_compiler_is_tried_once(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_compiler(monkeypatch, tmp_path, "exec tail -f /dev/null")
    monkeypatch.setattr(compiler, "_LONGEST", 0.01)
    with pytest.raises(RunError, match=r"did not end within .*; repair it, and remove"):
        compile_(source)
    monkeypatch.setattr(compiler, "_LONGEST", 1e6)
    monkeypatch.setattr(compiler, "_hung", set())  # as in a new process
    with pytest.raises(RunError, match="did not end within") as caught:
        compile_(source)
    Path(str(caught.value).rpartition("remove ")[2]).unlink()
    as_compiler(monkeypatch, tmp_path, 'exec cc "$@"')
    assert seven(compile_(source)) == 7


def test_a_source_has_at_most_20_seconds() -> None:
    assert compiler._LONGEST == 20


def test_replaced_compiler_is_tried_again(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_compiler(monkeypatch, tmp_path, "exec tail -f /dev/null")
    monkeypatch.setattr(compiler, "_LONGEST", 0.01)
    with pytest.raises(RunError):
        compile_(source)
    monkeypatch.undo()
    monkeypatch.setenv("ELMO_CACHE_ROOT", str(tmp_path / "cache"))
    as_compiler(monkeypatch, tmp_path, 'exec cc "$@"')
    assert seven(compile_(source)) == 7


def test_failing_compiler_is_reported_with_its_message(source: Path) -> None:
    source.write_text("no C\n")
    with pytest.raises(RunError) as caught:
        compile_(source)
    message = str(caught.value)
    assert message.startswith(f"the C compiler {which('cc')} fails ({source}:1:1: ")
    assert message.endswith(
        "); install gcc and the headers of the C library (Debian, Ubuntu: gcc libc6-dev)"
    )
    assert "\n" not in message


def test_a_missing_compiler_is_reported_with_install_advice(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler -O2")
    with pytest.raises(RunError, match="C compiler 'no-such-compiler' not found; install gcc"):
        compile_(source)


def test_unbalanced_quotation_in_cc_is_reported(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "cc '-O2")
    with pytest.raises(RunError, match="the variable CC is"):
        compile_(source)


def test_reason_for_the_slow_path_is_reported(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiler, "_loaders", [])
    monkeypatch.setattr(compiler, "_errors", {})
    load = compiler.library(source, fast_math=False, functions={"seven": []})
    assert compiler.slow_path_reason() is None
    assert load() is not None
    monkeypatch.setenv("CC", "no-such-compiler")
    missing = compiler.library(source, fast_math=True, functions={"seven": []})
    assert "no-such-compiler" in str(compiler.slow_path_reason())
    assert missing() is None


@pytest.fixture
def prebuilt(source: Path, num_calls: Callable[[], int]) -> Callable[[str], Path]:
    """Compiles another `seven`, which gives the length of a level's name, into the package."""

    def compile_for(name: str) -> Path:
        (level,) = (level for level in LEVELS if level.name == name)
        text = source.read_text()
        source.write_text(f"int seven(void) {{ return {len(name)}; }}\n")
        path = prebuilt_path(source, level)
        path.parent.mkdir(exist_ok=True)
        compile_(source).rename(path)
        source.write_text(text)
        return path

    return compile_for


AVX2 = "flags : fpu avx2 fma bmi1 bmi2 f16c movbe abm"
AVX512 = f"{AVX2} avx512f avx512bw avx512cd avx512dq avx512vl"


@pytest.mark.parametrize(
    ("cpu", "expected"),
    [
        ("flags : fpu sse2", 7),
        (AVX2, len("avx2")),
        (AVX512, len("avx512")),
        (f"{AVX512} avx512_vnni", len("avx512")),
        (f"{AVX512} avx512_vnni avx512_bf16", len("avx512_bf16")),
    ],
)
def test_a_native_wheel_has_the_library_of_the_cpu(
    source: Path,
    prebuilt: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    cpu: str,
    expected: int,
) -> None:
    for level in LEVELS:
        prebuilt(level.name)
    monkeypatch.setattr(compiler, "_cpu", lambda: cpu)
    load = compiler.library(source, fast_math=False, functions={"seven": []})
    functions = load()
    assert functions is not None
    functions.seven.restype = ctypes.c_int
    assert functions.seven() == expected


def test_a_library_of_the_package_needs_no_compiler(
    source: Path, prebuilt: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    prebuilt("avx2")
    monkeypatch.setattr(compiler, "_cpu", lambda: AVX2)
    monkeypatch.setenv("CC", "missing")
    assert compiler.library(source, fast_math=False, functions={"seven": []})() is not None


def test_a_damaged_library_of_the_package_is_compiled(
    source: Path, prebuilt: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    prebuilt("avx2").write_bytes(b"no library")
    monkeypatch.setattr(compiler, "_cpu", lambda: AVX2)
    functions = compiler.library(source, fast_math=False, functions={"seven": []})()
    assert functions is not None
    monkeypatch.setenv("CC", "missing")
    assert compiler.library(source, fast_math=False, functions={"seven": []})() is None


@pytest.fixture(autouse=True)
def same_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the libraries of a test."""
    monkeypatch.setattr(compiler, "_loaders", [])
    monkeypatch.setattr(compiler, "_errors", {})
    monkeypatch.setattr(compiler, "SOURCES", {})
