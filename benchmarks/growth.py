"""Time, memory and disk of the commands for growing text and more processes, as Markdown tables.

    python benchmarks/growth.py runs/demo/bilm TEXT --sizes 1000 10000 100000

Every row is one command in a new process with an empty cache. CPU seconds are those of all its
processes together, memory is that of the largest one. CPU seconds hardly change if other programs
use the machine; seconds by the clock do.

The text is repeated where it is too short, with the words of each line in another order, so that
no line is a copy of another.

A row `1 of N` is one part of a job that N equal machines would share (`--part 0/N`). It does not
include what these machines share, such as a file server.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias, final

from measuring import say
from usage import ELMO, ROOT, Usage, run, size_mib

from elmo_framework.config.load import Config

_PRETRAINING = ROOT / "experiments/pretrain/demo.jsonnet"
_ROWS = 16
"""The batch size of the pretraining, over all processes."""

_PRECOMPUTE = """
import sys, torch
from pathlib import Path
from elmo_framework.bilm.files.published import resolve_bilm
from elmo_framework.layers.bilm_source import open_layers

sentences = [line.split() for line in Path(sys.argv[2]).read_text().splitlines()]
layers = open_layers(resolve_bilm(sys.argv[1]), cache="disk")
layers.precompute(lambda: sentences, torch.device("cpu"))
"""


@final
@dataclass(frozen=True)
class Setting:
    """The input of a measurement.

    Attributes:
        bilm: embeds.
        text: one sentence per line.
        output: an empty folder.
        processes: their number.
    """

    bilm: str
    text: Path
    output: Path
    processes: int

    @property
    def corpus(self) -> Path:
        """The prepared text, which measurements of the same text share."""
        path = self.text.with_suffix(".corpus")
        if not path.exists():
            flags = ["--output-dir", str(path), "--held-out", "10", "--processes", "1"]
            run([*ELMO, "prepare", str(self.text), *flags])
        return path

    @property
    def launcher(self) -> Sequence[str]:
        """`elmo`, or `torchrun` with one `elmo` per process."""
        if self.processes == 1:
            return ELMO
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        return [*torchrun, "--nproc-per-node", str(self.processes), "-m", "elmo_framework"]

    @property
    def part(self) -> Sequence[str]:
        return ["--part", f"0/{self.processes}"]


Command: TypeAlias = Callable[[Setting], Sequence[str]]


@final
@dataclass(frozen=True)
class Work:
    """A command, and the numbers of processes that it is measured with.

    Attributes:
        command: returns its arguments.
        processes: that run at the same time.
        parts: of which one runs.
    """

    command: Command
    processes: Sequence[int] = ()
    parts: Sequence[int] = ()


def _prepare(setting: Setting) -> Sequence[str]:
    words = ["prepare", str(setting.text), "--output-dir", str(setting.output / "corpus")]
    return [*ELMO, *words, "--processes", str(setting.processes)]


def _prepare_part(setting: Setting) -> Sequence[str]:
    words = ["prepare", str(setting.text), "--output-dir", str(setting.output / "corpus")]
    return [*ELMO, *words, "--processes", "1", *setting.part]


def _embed(setting: Setting) -> Sequence[str]:
    words = ["embed", setting.bilm, str(setting.text), "--layers", "top", "--pool", "mean"]
    return [*setting.launcher, *words, "--output-file", str(setting.output / "vectors.npy")]


def _embed_part(setting: Setting) -> Sequence[str]:
    words = ["embed", setting.bilm, str(setting.text), "--layers", "top", "--pool", "mean"]
    return [*ELMO, *words, "--output-dir", str(setting.output / "shards"), *setting.part]


def _cache(setting: Setting) -> Sequence[str]:
    return [sys.executable, "-c", _PRECOMPUTE, setting.bilm, str(setting.text)]


def _train(setting: Setting) -> Sequence[str]:
    changes = _changes(setting, setting.processes)
    flags = [word for key in changes for word in ("-o", f"{key}={json.dumps(changes[key])}")]
    words = ["train", str(_PRETRAINING), "-s", str(setting.output / "run"), *flags]
    return [*setting.launcher, *words]


def _study(setting: Setting) -> Sequence[str]:
    """Return a study of two seeds; as many are trained at a time as there are processes."""
    variants = {"one_epoch": _changes(setting, 1)}
    config = Config.load(_PRETRAINING).raw
    study = {"configs": {"bilm": {"config": config, "variants": variants}}, "seeds": [1, 2]}
    path = setting.output / "study.json"
    path.write_text(json.dumps(study), encoding="utf-8")
    flags = ["-s", str(setting.output / "study"), "--jobs", str(setting.processes)]
    return [*ELMO, "study", str(path), *flags]


def _changes(setting: Setting, processes: int) -> dict[str, Any]:
    """Return the settings in which a training differs from that of the demo: one epoch."""
    return {
        "dataset_reader": {"type": "prepared_corpus"},
        "train_data_path": str(setting.corpus / "training"),
        "validation_data_path": str(setting.corpus / "held_out"),
        "trainer.num_epochs": 1,
        "data_loader.batch_size": _ROWS // processes,
    }


WORKS: Mapping[str, Work] = {
    "prepare": Work(_prepare, processes=(1, 2)),
    "prepare --part": Work(_prepare_part, parts=(8, 64)),
    "embed --output-file": Work(_embed, processes=(1, 2)),
    "embed --output-dir": Work(_embed_part, parts=(1, 2, 8, 64)),
    "cache": Work(_cache, processes=(1,)),
    "train": Work(_train, processes=(1, 2)),
    "study": Work(_study, processes=(1, 2)),
}


def main() -> int:
    """Measure and print the tables."""
    arguments = _arguments()
    with tempfile.TemporaryDirectory(prefix="growth-") as name:
        folder = arguments.folder or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        for work in arguments.works:
            say(_HEAD.format(name=work))
            for size in arguments.sizes:
                text = _text(folder, arguments.text, size)
                for processes, label in _counts(WORKS[work], arguments.processes):
                    usage, mib = _measure(WORKS[work].command, arguments.bilm, text, processes)
                    say(_row(size, label, usage, mib))
            say("")
    return 0


_HEAD = """**{name}**

| sentences | processes | seconds | CPU seconds | memory, MiB | disk, MiB |
|---|---|---|---|---|---|"""


def _counts(work: Work, wanted: Sequence[int]) -> list[tuple[int, str]]:
    parts = [(number, f"1 of {number}" if number > 1 else "1") for number in work.parts]
    counts = [(number, str(number)) for number in work.processes] + parts
    return [(number, label) for number, label in counts if number in wanted or not wanted]


def _row(size: int, label: str, usage: Usage, disk_mib: float) -> str:
    times = f"{usage.seconds:.1f} | {usage.cpu_seconds:.1f}"
    return f"| {size:,} | {label} | {times} | {usage.mib:,.0f} | {disk_mib:,.1f} |"


def _measure(command: Command, bilm: str, text: Path, processes: int) -> tuple[Usage, float]:
    """Run a command; return what it used, and the size of its output."""
    with tempfile.TemporaryDirectory(dir=text.parent) as name:
        output = Path(name)
        arguments = command(Setting(bilm, text, output, processes))
        usage = run(arguments, variables={"ELMO_CACHE_ROOT": str(output / "cache")})
        return usage, size_mib(output)


def _text(folder: Path, source: Path, size: int) -> Path:
    path = folder / f"{size}.txt"
    if not path.exists():
        lines = _sentences(source, random.Random(size))
        with path.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in islice(lines, size))
    return path


def _sentences(source: Path, generator: random.Random) -> Iterator[str]:
    """Yield the sentences of a file, then the same with their words in another order, forever."""
    lines = source.read_text(encoding="utf-8").splitlines()
    yield from lines
    while True:
        for line in lines:
            words = line.split()
            generator.shuffle(words)
            yield " ".join(words)


def _arguments() -> Namespace:
    parser = ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("bilm", metavar="BILM", help="embeds")
    parser.add_argument("text", metavar="TEXT", type=Path, help="one tokenized sentence per line")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--works", nargs="+", choices=list(WORKS), default=list(WORKS))
    parser.add_argument(
        "--processes", type=int, nargs="+", default=[], help="numbers of processes or parts (all)"
    )
    parser.add_argument("--folder", type=Path, help="keeps the texts (a temporary one)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
