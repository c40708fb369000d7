"""What is fuzzed: each target makes valid input once, mutates it, and uses it as a user would."""

from __future__ import annotations

import io
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from copy import deepcopy
from functools import cache
from pathlib import Path
from random import Random
from shutil import copytree, rmtree
from typing import Any, ClassVar, final

from elmo_framework import load_bilm
from elmo_framework.commands.main import main
from elmo_framework.compat.allennlp.translate import translate_allennlp
from elmo_framework.config.load import Config
from elmo_framework.config.parse import parse
from elmo_framework.config.registry import members
from elmo_framework.data.reader import DatasetReader
from elmo_framework.errors import ConfigError, DataError, ElmoFrameworkError, dotted
from elmo_framework.model.model import Model
from elmo_framework.study.study import is_study
from tests.experiment.jobs import DATA, PRETRAINING, ROOT, arguments, pretrain, tagging_with
from tests.experiment.studies import study, tagger
from tests.fuzz.mutation import mutated_bytes, mutated_json, mutated_text
from tests.fuzz.samples import SAMPLES
from tests.numpy_bilm import NumpyBiLm
from tests.unit.compat.configs import ALL_CONFIGS

_LONGEST_MESSAGE = 4000
_LEFT_VALID = 10
"""Of so many cases of files one is left valid, and must be accepted."""
_TWICE = 5
"""Each case of so many is tried a second time."""
_Use = Callable[[], str]


class FuzzError(Exception):
    """What no input may cause."""


class Target(ABC):
    """One kind of input.

    Attributes:
        name: what the command line calls it.

    Args:
        folder: for the valid input and the cases.
    """

    name: ClassVar[str]

    def __init__(self, folder: Path) -> None:
        self.folder, self.case_folder = folder / "valid", folder / "case"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.prepare()

    def attempt(self, number: int, *, seed: int = 0) -> str:
        """Use the mutated input of a number, every fifth twice; return what came out.

        Raises:
            FuzzError: a message without the form of one, or two uses that differ.
            Exception: a traceback that a user would see.
        """
        self.is_left_valid, outcomes = number % _LEFT_VALID == 0, []
        for _ in range(1 if number % _TWICE else 2):
            rmtree(self.case_folder, ignore_errors=True)
            self.case_folder.mkdir()
            use = self.mutate(Random(f"{self.name} {seed} {number}"))
            outcomes.append(use())
        if outcomes[0] != outcomes[-1]:
            raise FuzzError(f"differs: {outcomes[0]!r} and then {outcomes[-1]!r}")
        return outcomes[0]

    @abstractmethod
    def prepare(self) -> None:
        """Make the valid input."""

    @abstractmethod
    def mutate(self, chance: Random) -> _Use:
        """Write mutated input into the folder of the case, and return what uses it."""

    def mutate_file_of(self, valid: Path, chance: Random) -> Path:
        """Copy a folder into that of the case, and mutate a file of it, except in some cases."""
        folder = self.case_folder / valid.name
        copytree(valid, folder)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        if self.is_left_valid:
            return folder
        file = chance.choice(files)
        mutate = chance.choice([mutated_bytes, mutated_text, _mutated_json_file])
        file.write_bytes(mutate(file.read_bytes(), chance))
        return folder


@final
class Configs(Target):
    """The shipped configs; `elmo check` and `elmo train` must report the same problems."""

    name = "configs"

    def prepare(self) -> None:
        """Evaluate them; where a case is trained, its data do not exist, so that nothing is."""
        self._configs = [
            {**raw, **{key: "data.txt" for key in raw if key.endswith("_data_path")}}
            for raw in _shipped()
            if not is_study(raw)
        ]

    def mutate(self, chance: Random) -> _Use:
        """Mutate values, and sometimes the text that they are written as."""
        raw = mutated_json(chance.choice(self._configs), chance)
        text = json.dumps(raw, indent=1).encode()
        if chance.random() < 0.2:
            text = mutated_text(text, chance)
        (self.case_folder / "config.jsonnet").write_bytes(text)
        with_training = chance.random() < 0.1
        if not with_training:
            (self.case_folder / "data.txt").touch()
        return lambda: self._check(with_training=with_training)

    def _check(self, *, with_training: bool) -> str:
        with chdir(self.case_folder):
            outcome = elmo("check", "config.jsonnet")
            if with_training:
                trained = elmo("train", "config.jsonnet", "-s", "run")
                if _error_of(trained) != _error_of(outcome):
                    raise FuzzError(f"check and train differ: {outcome} {trained}")
        return outcome


@final
class OldConfigs(Target):
    """Configs of AllenNLP: translated so that `elmo check` accepts the result, or refused.

    A key without effect is never accepted: without it another config is written, or another table.
    """

    name = "old-configs"

    def prepare(self) -> None:
        """Take the configs of the tests; data is found by absolute paths."""
        self._configs = [*ALL_CONFIGS.values()]

    def mutate(self, chance: Random) -> _Use:
        """Mutate values, and sometimes rename a key."""
        raw = deepcopy(chance.choice(self._configs))
        if not self.is_left_valid and chance.random() < 0.3:
            blocks = [each for each in _objects(raw) if each]
            block = chance.choice(blocks)
            key = chance.choice(sorted(block))
            block[f"{key}_of_nobody"] = block.pop(key)
        elif not self.is_left_valid:
            raw = mutated_json(raw, chance)
        (self.case_folder / "old.json").write_text(json.dumps(raw))
        return lambda: self._convert(raw)

    def _convert(self, raw: dict[str, Any]) -> str:
        with chdir(self.case_folder):
            outcome = elmo("convert", "old.json", "--output-file", "new.jsonnet")
            if outcome.startswith("2 "):
                return outcome
            if idle := _keys_without_effect(raw):
                raise FuzzError(f"keys without effect are accepted: {', '.join(idle)}")
            return outcome + elmo("check", "new.jsonnet")


@final
class Studies(Target):
    """Studies; `elmo check` and `elmo study --dry-run` must report the same problems."""

    name = "studies"

    def prepare(self) -> None:
        """Make a study with each kind of search, next to those that are shipped."""
        number = {"type": "integer", "low": 2, "high": 4}
        searches = [
            None,
            {"type": "grid", "space": {"model.encoder.hidden_size": [2, 3]}},
            {"type": "list", "trials": [{"trainer.num_epochs": 2}]},
            {"type": "random", "space": {"trainer.num_epochs": number}, "num_trials": 2},
            {"type": "optuna", "space": {"trainer.num_epochs": number}, "num_trials": 2},
        ]
        variants = {"a": {"model": {"encoder": {"hidden_size": 3}}}, "b": {"trainer.patience": 3}}
        configs = {"ner": {"config": tagger(), "metric": "+accuracy"}}
        complete = {"configs": configs, "variants": variants, "comparisons": [["a", "b"]]}
        self._valid = [study(**complete, search=search, executor="local") for search in searches]
        self._studies = [*(raw for raw in _shipped() if is_study(raw)), *self._valid]

    def mutate(self, chance: Random) -> _Use:
        """Mutate values, and sometimes the text that they are written as."""
        if self.is_left_valid:
            text = json.dumps(chance.choice(self._valid)).encode()
        else:
            raw = deepcopy(chance.choice(self._studies))
            for _ in range(chance.choice([1, 1, 2, 4])):
                raw = mutated_json(raw, chance)
            text = json.dumps(raw, indent=1).encode()
            if chance.random() < 0.2:
                text = mutated_text(text, chance)
        (self.case_folder / "study.jsonnet").write_bytes(text)
        return self._check

    def _check(self) -> str:
        with chdir(self.case_folder):
            (self.case_folder / "experiments").symlink_to(ROOT / "experiments")
            outcome = elmo("check", "study.jsonnet")
            listed = elmo("study", "study.jsonnet", "-s", "study", "--dry-run")
            is_of_study = "configs" in Path("study.jsonnet").read_text(errors="replace")
            if is_of_study and _error_of(listed) != _error_of(outcome):
                raise FuzzError(f"check and study differ: {outcome} {listed}")
        return outcome + listed


@final
class Data(Target):
    """Files of every registered reader."""

    name = "data"

    def prepare(self) -> None:
        """Find the readers, and the task of each."""
        tasks = {model.task.example_type: model.task for model in members(Model).values()}
        self._readers = {
            name: parse(DatasetReader, {"type": name}, source="fuzz").build() for name in SAMPLES
        }
        self._samples = [
            (name, tasks[reader.example_type], *sample)
            for name, reader in self._readers.items()
            for sample in SAMPLES[name]
        ]

    def mutate(self, chance: Random) -> _Use:
        """Mutate lines and cells, the values of JSON, or bytes."""
        reader, task, name, content = chance.choice(self._samples)
        choices = [mutated_text, mutated_text, mutated_bytes]
        if name.endswith(("json", "jsonl", "jsonlines")):
            choices.append(_mutated_json_file)
        path = self.case_folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(chance.choice(choices)(content, chance))
        place = self.case_folder / Path(name).parts[0]
        return lambda: self._read(reader, task, place)

    def _read(self, name: str, task: Any, path: Path) -> str:
        try:
            examples = list(self._readers[name].read(path))
            counts = task.count(examples)
            lengths = [task.num_tokens(example) for example in examples]
        except DataError as error:
            message = str(error)
            if not message.startswith(str(path)) or len(message) > _LONGEST_MESSAGE:
                raise FuzzError(
                    f"{name}: message without its file, or too long: {message}"
                ) from error
            return f"{name}: refused: {message}"
        if min(lengths, default=0) <= 0:
            raise FuzzError(f"{name}: an example without words, or none")
        return f"{name}: {examples} {counts}"


@final
class Weights(Target):
    """The two files of a biLM."""

    name = "weights"

    def prepare(self) -> None:
        """Write a small biLM."""
        self._bilm = NumpyBiLm.random().save(self.folder / "bilm")

    def mutate(self, chance: Random) -> _Use:
        """Mutate the options or the weights."""
        folder = self.mutate_file_of(self._bilm, chance)
        return lambda: self._load(folder)

    def _load(self, folder: Path) -> str:
        report = elmo("check-weights", str(folder))
        try:
            layers = load_bilm(folder).embed([["A", "sentence", "."]])
        except ElmoFrameworkError as error:
            return f"{report} {error}"
        return f"{report} {layers[0].tolist()}"


@final
class Runs(Target):
    """Runs of a biLM and of a tagger on it: every command that reads a run.

    Args:
        folder: for the cases.
        bilm: the run of a biLM, if there is one already.
        tagger: the run of a tagger on it.
    """

    name = "runs"

    def __init__(
        self, folder: Path, *, bilm: Path | None = None, tagger: Path | None = None
    ) -> None:
        self._bilm, self._tagger = bilm, tagger
        super().__init__(folder)

    def prepare(self) -> None:
        """Train both where they are missing."""
        self._ner = "experiments/ner/elmo.jsonnet"
        if self._bilm is None or self._tagger is None:
            self._bilm, self._tagger = self.folder / "bilm", self.folder / "tagger"
            if not (self._tagger / "metrics.json").exists():
                pretrain(self._bilm)
                elmo(*arguments(self._ner, self._tagger, tagging_with(self._bilm)))
        self._text = self.folder / "text.txt"
        self._text.write_text("Anna Kovacs moved to Lisbon .\nIt rained .\n")

    def mutate(self, chance: Random) -> _Use:
        """Mutate one file of one of the runs."""
        assert self._bilm
        assert self._tagger
        is_bilm = chance.random() < 0.4
        folder = self.mutate_file_of(self._bilm if is_bilm else self._tagger, chance)
        run, out = str(folder), str(self.case_folder / "out")
        bilm, text = str(self._bilm), str(self._text)
        config = "experiments/pretrain/demo.jsonnet" if is_bilm else self._ner
        changes = PRETRAINING if is_bilm else tagging_with(self._bilm)
        words = chance.choice(
            [
                ["export", run, "--output-dir", out],
                ["embed", run, text, "--output-file", out],
                ["evaluate", run, str(DATA / "lm_valid.txt")],
                ["report", run, "--output-file", out],
                arguments(config, folder, changes, "--recover"),
            ]
            if is_bilm
            else [
                ["evaluate", run, str(DATA / "valid.txt"), "--format", "json"],
                ["predict", run, text],
                ["report", run, "--output-file", out],
                ["embed", bilm, text, "--output-file", out, "--layers", f"mixed({run})"],
                arguments(config, folder, changes, "--recover"),
            ]
        )
        return lambda: elmo(*words)


@final
class Corpora(Target):
    """What `elmo prepare` has made, read by a training of one update."""

    name = "corpora"

    def prepare(self) -> None:
        """Make a small corpus."""
        self._corpus = self.folder / "corpus"
        if not self._corpus.exists():
            text = self.folder / "text.txt"
            text.write_bytes(b"".join((DATA / "lm_train.txt").read_bytes().splitlines(True)[:200]))
            elmo("prepare", str(text), "--output-dir", str(self._corpus), "--held-out", "0.1")

    def mutate(self, chance: Random) -> _Use:
        """Mutate one file of the corpus."""
        corpus = self.mutate_file_of(self._corpus, chance)
        changes = {
            **PRETRAINING,
            "dataset_reader": "prepared_corpus",
            "train_data_path": str(corpus / "training"),
            "validation_data_path": str(corpus / "held_out"),
            "trainer.num_epochs": None,
            "trainer.num_steps": 1,
        }
        changes.pop("dataset_reader.max_instances")
        run = self.case_folder / "run"
        return lambda: elmo(*arguments("experiments/pretrain/demo.jsonnet", run, changes))


TARGETS: dict[str, type[Target]] = {
    target.name: target for target in (Configs, OldConfigs, Studies, Data, Weights, Runs, Corpora)
}


def elmo(*words: str) -> str:
    """Run a command of `elmo` in this process; return its exit code, output and error.

    Raises:
        FuzzError: the code is neither 0 nor 2, or the error is no message.
    """
    output, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(output), redirect_stderr(errors):
        code = main(words)
    message = errors.getvalue()
    start = message.rfind("error: ")
    if code not in (0, 2) or "Traceback" in message or (code == 2) != (start >= 0):
        raise FuzzError(f"exit code {code}: {message[-_LONGEST_MESSAGE:]}")
    return f"{code} {_without_times(output.getvalue())}{message[start:] if code else ''}"


def _error_of(outcome: str) -> str:
    """Return the message at the end of what `elmo` returned; empty without an error."""
    return "".join(outcome.partition("error: ")[1:])


@cache
def _shipped() -> list[dict[str, Any]]:
    """Return the shipped configs and studies; do not change them."""
    paths = sorted((ROOT / "experiments").rglob("*.jsonnet"))
    return [_without_files(Config.load(path).raw) for path in paths]


def _without_files(value: Any) -> Any:
    """Replace what a config reads, so that only data have to exist."""
    match value:
        case dict():
            return {
                key: None if key == "pretrained_file" else _without_files(value[key])
                for key in value
            }
        case list():
            return [_without_files(item) for item in value]
        case "runs/bilm" | "runs/mini":
            return "mini"
        case _:
            return value


def _keys_without_effect(raw: dict[str, Any]) -> list[str]:
    """Return the keys of a config of AllenNLP without which its translation is the same.

    Keys of an object that is dropped, with a reason in the table, are left out. So is the type of
    a component, which may be the default.
    """
    whole = translate_allennlp(raw, "old.json")
    assert whole is not None, raw
    dropped = re.findall(r"^(\S+) +dropped ", whole.summary, re.MULTILINE)
    idle = []
    for path, block in _placed_objects("", raw):
        for key in [key for key in block if key != "type"]:
            place = dotted(path, key)
            items = list(block.items())
            del block[key]
            try:
                is_idle = translate_allennlp(raw, "old.json") == whole
            except ConfigError:
                is_idle = False
            block.clear()
            block.update(items)  # in the same order
            if is_idle and not any(place.startswith(each) for each in dropped):
                idle.append(place)
    return idle


def _placed_objects(path: str, value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield all objects of a JSON value with their paths."""
    if isinstance(value, dict):
        yield path, value
        for key, item in list(value.items()):
            yield from _placed_objects(dotted(path, key), item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _placed_objects(f"{path}[{index}]", item)


def _objects(value: Any) -> list[dict[str, Any]]:
    """Return all objects of a JSON value."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = [value] if isinstance(value, dict) else []
    return [*own, *(each for item in inner for each in _objects(item))]


def _without_times(output: str) -> str:
    return "\n".join(line for line in output.splitlines() if "seconds" not in line)


def _mutated_json_file(content: bytes, chance: Random) -> bytes:
    """Mutate a value of a file of JSON, or of one line of a file of JSON lines."""
    try:
        return json.dumps(mutated_json(json.loads(content), chance)).encode()
    except ValueError:
        lines = content.splitlines(keepends=True)
    for place in chance.sample(range(len(lines)), len(lines)):
        try:
            lines[place] = json.dumps(mutated_json(json.loads(lines[place]), chance)).encode()
        except ValueError:
            continue
        return b"".join([*lines[: place + 1], b"\n", *lines[place + 1 :]])
    return mutated_text(content, chance)
