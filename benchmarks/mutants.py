"""Puts small faults into the package, one at a time, and tells which of them no test notices.

The faults are those of `faults.py`, which are written by hand, and a sample of what `mutation.py`
finds in the packages below, in Python and in C. Each is put into a copy of the project and tried
with the unit tests of its own folder: first the tests of its file, then those that run its
function. Those tests are found out once, by running each folder with coverage. What was noticed
is not tried again in the same record; `--again` tries everything. The copies, the log of each
trial and a report are in the folder of the record.

    python benchmarks/mutants.py --record runs/mutants --jobs 2

Other tools (mutmut, cosmic-ray) mutate no C, and know no tests that belong to a file.
"""

from __future__ import annotations

import ast
import hashlib
import json
import multiprocessing
import os
import re
import resource
import shutil
import signal
import sys
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from pathlib import Path

from equivalent_mutants import EQUIVALENT
from faults import FAULTS
from measuring import say
from mutation import Edit, Mutant, chosen, mutants_of, named

_ROOT = Path(__file__).parents[1]
_PACKAGE = "elmo_framework"
_PACKAGES = ("nn", "bilm", "training", "metrics", "tasks", "embedders", "data")
_COPIED = ("benchmarks", "docs", "elmo_framework", "experiments", "plugins", "tests")
"""The folders that tests read, beside the files in the root of the project."""
_PRELOADED = ("torch", "torch.distributed", "scipy.optimize", "h5py", "pydantic", "spacy")
"""Large libraries that are imported once, before the processes of the trials are forked."""
_CPU_SECONDS, _SECONDS, _BYTES = 120, 900, 8 << 30
"""The limits of a trial; a fault can make a loop endless or a tensor huge."""
_WRAPPERS: Mapping[str, Sequence[str]] = {
    "activations.h": ("lstm_step.c", "highway_step.c", "gated_scan.c"),
    "layer_product.h": ("training_layer.c", "highway_layer.c"),
}
"""Which C files include a header."""

Verdict = str
"""`killed`, `survived`, `timeout`, or `error`, where no test could be run."""


@dataclass(frozen=True)
class Result:
    """What came of a mutant.

    Attributes:
        mutant: what was tried.
        verdict: whether a test has noticed it.
        test: the first test that has.
        seconds: how long it took.
    """

    mutant: Mutant
    verdict: Verdict
    test: str
    seconds: float


@dataclass(frozen=True)
class Coverage:
    """Which tests of a folder run which lines.

    Attributes:
        tests: by file, from the root of the project, and by line.
    """

    tests: Mapping[str, Mapping[str, Sequence[str]]]

    def of_lines(self, path: str, lines: Iterable[int] | None) -> list[str]:
        """Return the tests that run some lines of a file, or any line of it."""
        by_line = self.tests.get(path, {})
        asked = by_line if lines is None else map(str, lines)
        return list(dict.fromkeys(test for line in asked for test in by_line.get(line, ())))


class Copy:
    """A copy of the project, with one fault in it at most.

    Args:
        folder: where it is made.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for path in _ROOT.iterdir():
            if path.name in _COPIED:
                shutil.copytree(path, folder / path.name, ignore=shutil.ignore_patterns("*.pyc"))
            elif path.is_file():
                shutil.copy2(path, folder)
        self._restored: dict[Path, tuple[bytes, float]] = {}
        self._num_changes = 0

    def change(self, mutant: Mutant) -> None:
        """Put a fault in."""
        path = self.folder / mutant.path
        source, modified = path.read_bytes(), path.stat().st_mtime
        self._restored[path] = source, modified
        path.write_bytes(mutant.apply(source))
        self._num_changes += 1
        # A time of its own, so that the bytecode of no other fault is taken for its own.
        own = modified - self._num_changes
        os.utime(path, (own, own))

    def restore(self) -> None:
        """Take the fault out."""
        for path, (source, modified) in self._restored.items():
            path.write_bytes(source)
            os.utime(path, (modified, modified))
        self._restored.clear()

    def start(
        self, arguments: Sequence[str], log: Path, *, is_limited: bool = True, **variables: str
    ) -> ForkProcess:
        """Start pytest in the copy, in a process of its own that has the libraries already."""
        context = multiprocessing.get_context("fork")
        process = context.Process(
            target=_pytest, args=(self.folder, arguments, log, is_limited, variables)
        )
        process.start()
        return process


@dataclass
class Trial:
    """A mutant that is being tried.

    Attributes:
        mutant: what is tried.
        copy: where.
        process: runs the tests.
        log: what they print.
        began: when they were started.
    """

    mutant: Mutant
    copy: Copy
    process: ForkProcess
    log: Path
    began: float = field(default_factory=time.monotonic)

    @property
    def is_over_time(self) -> bool:
        """Whether it waits for something that does not come."""
        return time.monotonic() - self.began > _SECONDS

    def result(self) -> Result:
        """End the process, take the fault out and return what came of it."""
        end(self.process)
        self.copy.restore()
        code, log = self.process.exitcode, self.log.read_text(errors="replace")
        verdict = "killed" if code else "survived"
        if code in (4, 5) and "ERROR collecting" not in log:
            verdict = "error"
        if code == -signal.SIGXCPU or self.is_over_time:
            verdict = "timeout"
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", log, re.M)
        seconds = time.monotonic() - self.began
        return Result(self.mutant, verdict, failed[1] if failed else "", seconds)


def main() -> int:
    """Try the mutants; return 1 if one survived that is not known to be equivalent."""
    parser = ArgumentParser(description="Try the tests on faults that are put into the package.")
    parser.add_argument("--record", type=Path, default=Path("runs/mutants"), help="a folder")
    parser.add_argument("--count", type=int, default=200, help="mutants beside those of faults.py")
    parser.add_argument("--seed", type=int, default=1, help="of their choice (1)")
    parser.add_argument("--jobs", type=int, default=1, help="how many are tried at a time (1)")
    parser.add_argument("--only", default="", help="a regular expression for paths or names")
    parser.add_argument("--again", action="store_true", help="try what was noticed before, too")
    parser.add_argument("--list", action="store_true", help="show the mutants and try none")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped by SIGTERM"))
    mutants = [m for m in all_mutants(options.count, options.seed) if _is_asked_for(m, options)]
    if options.list:
        for mutant in mutants:
            say(_description(mutant))
        return 0
    return campaign(mutants, options)


def all_mutants(count: int, seed: int) -> list[Mutant]:
    """Return the mutants that are written by hand, then a sample of the others."""
    by_hand = [mutant for path in sorted({f.path for f in FAULTS}) for mutant in _by_hand(path)]
    return by_hand + chosen((mutants_of(_ROOT, path) for path in _sources()), count, seed=seed)


def campaign(mutants: Sequence[Mutant], options: Namespace) -> int:
    """Try mutants, say what comes of each, write the report; return the exit code."""
    record = options.record.resolve()
    (record / "logs").mkdir(parents=True, exist_ok=True)
    results = {} if options.again else _results(record, mutants)
    # As the files are now: they may change while this runs.
    differences = {m.identity: m.difference((_ROOT / m.path).read_bytes()) for m in mutants}
    left = [m for m in mutants if results.get(m.identity, "") not in ("killed", "timeout")]
    say(f"{len(mutants)} mutants, {len(mutants) - len(left)} of them noticed before")
    for name in _PRELOADED:
        import_module(name)
    copies = [Copy(record / f"copy-{number}") for number in range(options.jobs)]
    folders = sorted({tests_folder(mutant.path) for mutant in left})
    coverages = _coverages(copies, folders, record)
    with (record / "results.jsonl").open("a", encoding="utf-8") as file:
        for number, result in enumerate(_tried(left, copies, coverages, record), 1):
            identity = result.mutant.identity
            results[identity] = result.verdict
            file.write(json.dumps({"identity": identity, "verdict": result.verdict}) + "\n")
            file.flush()
            say(
                f"[{number}/{len(left)}] {result.verdict} in {result.seconds:.0f} s: "
                f"{_description(result.mutant)}  {result.test}"
            )
    report = _report(mutants, results, differences)
    (record / "report.txt").write_text(report, encoding="utf-8")
    say(report)
    return int(any(results[m.identity] in ("survived", "error") for m in _unexplained(mutants)))


def tests_folder(path: str) -> str:
    """Return the folder of the unit tests of a file, both from the root of the project."""
    parts = Path(path).parts[1:-1]
    return str(Path("tests/unit", *parts[: 2 if parts[0] == "tasks" else 1]))


def tests_of(mutant: Mutant, coverage: Coverage, root: Path) -> list[str]:
    """Return the tests that could notice a mutant: those of its file, then those that run it."""
    folder, stem = tests_folder(mutant.path), Path(mutant.path).stem
    own = [f"{folder}/test_{stem}.py"]
    tests = [own[0]] if (root / own[0]).is_file() else []
    if mutant.path.endswith(".py"):
        paths, lines = [mutant.path], _lines_of_function(root / mutant.path, mutant.line)
    else:
        sources = _WRAPPERS.get(Path(mutant.path).name, (Path(mutant.path).name,))
        names = [Path(name).with_suffix(".py").name for name in sources]
        paths, lines = [str(Path(mutant.path).with_name(name)) for name in names], None
    for path in paths:
        tests += coverage.of_lines(path, lines)
    whole = {test for test in tests if "::" not in test}
    return [t for t in tests if t in whole or t.partition("::")[0] not in whole] or [folder]


def end(process: ForkProcess) -> None:
    """End a process with all that it has started."""
    if process.is_alive() and process.pid is not None:
        os.killpg(process.pid, signal.SIGKILL)
    process.join()


def _tried(
    mutants: Iterable[Mutant],
    copies: Sequence[Copy],
    coverages: Mapping[str, Coverage],
    record: Path,
) -> Iterator[Result]:
    """Try mutants, one at a time in each copy."""
    free, running, waiting = list(copies), dict[int, Trial](), iter(mutants)
    try:
        while True:
            while free and (mutant := next(waiting, None)) is not None:
                copy = free.pop()
                tests = tests_of(mutant, coverages[tests_folder(mutant.path)], copy.folder)
                copy.change(mutant)
                log = record / "logs" / f"{mutant.identity}.txt"
                process = copy.start(["-x", *tests], log)
                running[process.sentinel] = Trial(mutant, copy, process, log)
            if not running:
                return
            ended = set(wait(list(running), timeout=5))
            ended |= {key for key, trial in running.items() if trial.is_over_time}
            for key in ended:
                trial = running.pop(int(key))  # type: ignore[call-overload]
                free.append(trial.copy)
                yield trial.result()
    finally:
        for trial in running.values():
            trial.result()


def _pytest(
    folder: Path,
    arguments: Sequence[str],
    log: Path,
    is_limited: bool,
    variables: Mapping[str, str],
) -> None:
    """Run pytest in a copy of the project; end this process with its exit code."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for descriptor, source in ((0, os.open(os.devnull, os.O_RDONLY)), (1, output), (2, output)):
        os.dup2(source, descriptor)
    os.chdir(folder)
    sys.path[:] = [
        str(folder),
        *(p for p in sys.path if Path(p).resolve() != Path(__file__).parent),
    ]
    os.environ |= {"PYTHONPATH": str(folder), **variables}
    if is_limited:
        resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS + 10))
        resource.setrlimit(resource.RLIMIT_DATA, (_BYTES, _BYTES))
    spec = find_spec(_PACKAGE)
    assert spec is not None
    assert spec.origin is not None
    assert Path(spec.origin).is_relative_to(folder), spec.origin
    code = int(import_module("pytest").main(["-q", "-p", "no:cacheprovider", *arguments]))
    sys.stdout.flush()
    os._exit(code)


def _coverages(copies: Sequence[Copy], folders: Sequence[str], record: Path) -> dict[str, Coverage]:
    """Run the tests of folders without a fault, as many at a time as there are copies."""
    files = {folder: record / f"coverage-{_digest(folder)}" for folder in folders}
    missing = [folder for folder in folders if not files[folder].exists()]
    for some in (missing[at : at + len(copies)] for at in range(0, len(missing), len(copies))):
        say(f"running {', '.join(some)} without a fault ...")
        started = [
            (folder, copy, _start_with_coverage(copy, folder, files[folder]))
            for folder, copy in zip(some, copies, strict=False)
        ]
        try:
            for folder, copy, process in started:
                process.join()
                if process.exitcode:
                    sys.exit(f"{folder} fails without a fault; see {files[folder]}.txt")
                coverage = _coverage_of(files[folder].with_suffix(".data"), copy.folder)
                files[folder].write_text(json.dumps(coverage.tests), encoding="utf-8")
        finally:
            for *_, process in started:
                end(process)
    return {
        folder: Coverage(json.loads(file.read_text(encoding="utf-8")))
        for folder, file in files.items()
    }


def _start_with_coverage(copy: Copy, folder: str, file: Path) -> ForkProcess:
    data, log = file.with_suffix(".data"), file.with_suffix(".txt")
    data.unlink(missing_ok=True)
    flags = [f"--cov={_PACKAGE}", "--cov-context=test", "--cov-report="]
    return copy.start([folder, *flags], log, is_limited=False, COVERAGE_FILE=str(data))


def _coverage_of(data: Path, root: Path) -> Coverage:
    """Read what coverage has noted, by the line and the test."""
    held = import_module("coverage").CoverageData(str(data))
    held.read()
    tests: dict[str, dict[str, list[str]]] = {}
    for file in held.measured_files():
        by_line = {
            str(line): list(filter(None, map(_test_of_context, contexts)))
            for line, contexts in held.contexts_by_lineno(file).items()
        }
        tests[str(Path(file).relative_to(root))] = {k: v for k, v in by_line.items() if v}
    return Coverage(tests)


def _test_of_context(context: str) -> str:
    """Return the test of a context; what a fixture runs may count for all tests of a file."""
    test, _, phase = context.rpartition("|")
    return test if phase == "run" else test.partition("::")[0]


def _lines_of_function(path: Path, line: int) -> list[int] | None:
    """Return the lines of the innermost function that holds a line, but for its signature."""
    tree = ast.parse(path.read_bytes())
    functions = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    if not functions:
        return None
    innermost = max(functions, key=lambda node: node.lineno)
    return list(range(innermost.body[0].lineno, (innermost.end_lineno or 0) + 1))


def _digest(folder: str) -> str:
    """Return a name for the tests of a folder and what they test, as they are now."""
    tested = _ROOT / _PACKAGE / Path(folder).relative_to("tests/unit")
    files = sorted([*(_ROOT / folder).rglob("*.py"), *tested.rglob("*.py")])
    texts = [f"{path.relative_to(_ROOT)}\n".encode() + path.read_bytes() for path in files]
    return hashlib.sha256(b"\n".join(texts)).hexdigest()[:16]


def _sources() -> list[str]:
    """Return the files that mutants are made of."""
    folders = [_ROOT / _PACKAGE / name for name in _PACKAGES]
    files = [path for folder in folders for path in folder.rglob("*.*")]
    return sorted(str(p.relative_to(_ROOT)) for p in files if p.suffix in (".py", ".c", ".h"))


def _by_hand(path: str) -> list[Mutant]:
    """Return the mutants of a file that are written by hand."""
    source = (_ROOT / path).read_bytes()
    edits = []
    for fault in FAULTS:
        if fault.path == path:
            before = fault.before.encode()
            if source.count(before) != 1:
                sys.exit(f"{path} holds {source.count(before)} times: {fault.before}")
            start = source.index(before)
            edits.append(Edit("by hand", start, start + len(before), fault.after.encode()))
    return named(path, source, edits)


def _is_asked_for(mutant: Mutant, options: Namespace) -> bool:
    return bool(re.search(options.only, f"{mutant.path} {mutant.kind} {mutant.identity}"))


def _results(record: Path, mutants: Iterable[Mutant]) -> dict[str, Verdict]:
    """Return the last verdict of each mutant that was tried before."""
    path = record / "results.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    last = {held["identity"]: held["verdict"] for held in map(json.loads, lines)}
    return {m.identity: last[m.identity] for m in mutants if m.identity in last}


def _unexplained(mutants: Iterable[Mutant]) -> list[Mutant]:
    return [mutant for mutant in mutants if mutant.identity not in EQUIVALENT]


def _description(mutant: Mutant) -> str:
    return f"{mutant.identity} {mutant.path}:{mutant.line} {mutant.kind}"


def _report(
    mutants: Sequence[Mutant], results: Mapping[str, Verdict], differences: Mapping[str, str]
) -> str:
    """Return the verdicts of each package as a table, then the mutants that no test noticed."""
    packages = [*(f"{_PACKAGE}/{name}" for name in _PACKAGES), _PACKAGE]
    lines = [f"{'':28} mutants  killed  timeout  survived"]
    for package in packages:
        found = Counter(results[m.identity] for m in mutants if m.path.startswith(package))
        numbers = found.total(), found["killed"], found["timeout"], found["survived"]
        lines.append(f"{package:28} {numbers[0]:7} {numbers[1]:7} {numbers[2]:8} {numbers[3]:9}")
    for mutant in mutants:
        if results[mutant.identity] not in ("killed", "timeout"):
            reason = EQUIVALENT.get(mutant.identity, results[mutant.identity])
            lines += ["", f"{_description(mutant)}: {reason}", differences[mutant.identity]]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
