"""Read the config of a run, and find the biLMs that it refers to after either has been moved.

The weights of a run do not hold a frozen biLM. What is recorded of it when training starts (where
it was, seen from the run too, and the digest of its files) finds it again and proves that it is
the same.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, cast, get_args

from pydantic import ValidationError

from elmo_framework.bilm.files.load import BILM_TF, GENERIC, VOCABULARY, BiLmFiles, reference
from elmo_framework.bilm.files.published import BiLmName, resolve_bilm
from elmo_framework.config import plain
from elmo_framework.config.resolve import Leaf, leaves, with_arguments
from elmo_framework.config.signature import hint_metadata, walk
from elmo_framework.config.types import Lazy, MustExist
from elmo_framework.errors import DataError, RunError
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.experiment.run_directory import RunDirectory
from elmo_framework.io.archives import local_folder
from elmo_framework.io.remote import RemotePath, as_path
from elmo_framework.layers.encoder_files import encoder_reference
from elmo_framework.layers.encoder_format import encoder_format
from elmo_framework.layers.transformer_files import files_of_transformer, is_transformer
from elmo_framework.model.model import Model
from elmo_framework.model.part import Reference

BiLmPaths: TypeAlias = Path | str | Sequence[Path | str]
"""One biLM or several, each by its folder, by the run that trained it, or by its name."""

_PAIR = {"options_file", "weight_file"}
_SHOWN_DIGITS = 12


@dataclass(frozen=True)
class RecordedPath:
    """The location of a model when training started.

    Attributes:
        given: as the user wrote it: a path, or the name of a biLM.
        absolute: its absolute path; None for a name.
        relative: its path from the run directory; None for a name.
    """

    given: str
    absolute: str | None = None
    relative: str | None = None


@dataclass(frozen=True)
class RecordedModel:
    """The record of a model that a run refers to and does not contain.

    Attributes:
        sha256: of the content of its files.
        files: their locations, by the keys of the configuration.
    """

    sha256: str | None
    files: dict[str, RecordedPath]


@dataclass(frozen=True)
class ExternalModel:
    """A model in separate files, such as a biLM, that the model of a configuration reads.

    Attributes:
        path: the dotted path of the component that reads it.
        files: its location: config keys with their values, a path or the name of a biLM.
    """

    path: str
    files: Mapping[str, str | Path]

    @property
    def module(self) -> str:
        """The name of the component's module in the model."""
        return _module(self.path)

    @property
    def keys(self) -> list[str]:
        """The dotted paths of the values."""
        return [f"{self.path}.{key}" for key in self.files]

    @property
    def bilm_place(self) -> Path | str | None:
        """The folder or the name of a biLM; None if its files have other names."""
        if self.files.keys() != _PAIR:
            (place,) = self.files.values()
            return None if isinstance(place, Path) and place.is_file() else place
        folder = Path(self.files["options_file"]).parent
        return folder if self.with_bilm(folder) == self else None

    def digest(self) -> str | None:
        """Return the SHA-256 of a biLM; None for a model of another kind.

        Raises:
            DataError: it is not there.
        """
        if self.files.keys() == _PAIR:
            options, weights = (Path(self.files[key]) for key in sorted(_PAIR))
            return reference(BiLmFiles(options, weights)).digest
        (place,) = self.files.values()
        # The place of a biLM is a folder or a name.
        if isinstance(place, Path) and place.is_file():
            return None
        return encoder_reference(place).digest

    def with_bilm(self, place: Path | str) -> ExternalModel:
        if self.files.keys() != _PAIR:
            location = place if place in get_args(BiLmName) else as_path(place)
            return replace(self, files=dict.fromkeys(self.files, location))
        files = resolve_bilm(place)
        return replace(self, files={"options_file": files.options, "weight_file": files.weights})

    def contents(self) -> dict[str, Path]:
        """Return the files that reading it needs, by their names in a folder of its own.

        Raises:
            DataError: a biLM is not there.
        """
        if self._is_files():
            paths = [Path(place) for place in self.files.values()]
            return {path.name: path for path in paths}
        (place,) = self.files.values()
        if is_transformer(as_path(place)):
            return {path.name: path for path in files_of_transformer(local_folder(place))}
        if (added := encoder_format(place)) is not None:
            return {path.name: path for path in added.files(Path(place))}
        files = resolve_bilm(place)
        names = GENERIC if files.is_generic else BILM_TF  # a download has other names
        vocabulary = {VOCABULARY: files.vocabulary} if files.vocabulary.is_file() else {}
        own = {path.name: path for path in files.of_token_encoder}
        return {names[0]: files.options, names[1]: files.weights, **own, **vocabulary}

    def packed(self, folder: str, before: RecordedModel | None) -> dict[str, RecordedPath]:
        """Return what a run records of it when its `contents` are in a folder of the run.

        Args:
            folder: relative to the run.
            before: what the run has recorded so far.
        """
        files = {} if before is None else before.files
        return {
            key: RecordedPath(
                files[key].given if key in files else str(place),
                relative=f"{folder}/{Path(place).name}" if self._is_files() else folder,
            )
            for key, place in self.files.items()
        }

    def _is_files(self) -> bool:
        return all(isinstance(place, Path) and place.is_file() for place in self.files.values())

    def is_present(self) -> bool:
        """Return whether its paths exist; the name of a biLM always does."""
        return all(place.exists() for place in self.files.values() if isinstance(place, Path))

    def __str__(self) -> str:
        return ", ".join(map(str, self.files.values()))


def external_models(experiment: Lazy[Experiment]) -> list[ExternalModel]:
    """List the models that the model of a configuration reads whenever it is loaded."""
    files: dict[str, dict[str, str | Path]] = {}
    for leaf in leaves(experiment.arguments["model"]):
        if leaf.value is not None and _is_reference(leaf):
            path, _, key = leaf.path.rpartition(".")
            files.setdefault(path, {})[key] = leaf.value
    return [ExternalModel(path, places) for path, places in files.items()]


def describe_references(
    experiment: Lazy[Experiment], references: Mapping[str, Reference], run: Path
) -> dict[str, RecordedModel]:
    """Return what a run records of the models that it refers to, by the paths of their components.

    Args:
        experiment: as given, with the paths that the user wrote.
        references: the files that the model has read, by its modules; other models are digested
            here.
        run: the run directory.

    Raises:
        DataError: a biLM is not there any more.
    """
    return {
        model.path: RecordedModel(
            references[model.module].digest if model.module in references else model.digest(),
            {key: _recorded(place, run) for key, place in model.files.items()},
        )
        for model in external_models(experiment)
    }


def locate(
    run: RunDirectory, experiment: Lazy[Experiment], bilms: BiLmPaths = ()
) -> Lazy[Experiment]:
    """Return the configuration of a run with the places where its biLMs are now.

    Each is looked for among `bilms`, at its path relative to the run, and at the path or the name
    in the configuration. A biLM that is not at its original place must have the recorded digest.

    Args:
        run: a run with a configuration.
        experiment: that configuration, checked.
        bilms: locations given by the user; each is matched by its digest.

    Raises:
        RunError: one is nowhere, or one of `bilms` is not a biLM of this run.
        DataError: one of `bilms` is not a biLM.
    """
    places = [bilms] if isinstance(bilms, str | Path) else list(bilms)
    offered = [(place, encoder_reference(place).digest) for place in places]
    models = external_models(experiment)
    expected = {model.path: expected_digest(run, model) for model in models}
    for place, digest in offered:
        if digest not in expected.values() and not _is_taken_on_trust(expected):
            digests = ", ".join(map(_short, filter(None, expected.values()))) or "no biLM"
            raise RunError(
                f"--bilm {place}: this biLM (SHA-256 {_short(digest)}) is not the one that the "
                f"run {run.path} was trained with ({digests})"
            )
    located = {model.path: _located(run, model, expected, offered).files for model in models}
    return with_arguments(experiment, located)


def require_recorded(run: RunDirectory, experiment: Lazy[Experiment], model: Model[Any]) -> None:
    """Refuse another biLM in the place of the one that a run was trained with.

    Args:
        run: a run with a configuration.
        experiment: that configuration, of `locate`.
        model: built from it.

    Raises:
        RunError: the digest of its files is another.
    """
    references = model.references()
    recorded = run.read_digests().get("bilm", {})
    for name, files in references.items():
        _require_same(run, str(files.path), files.digest, recorded.get(name))
    for external in external_models(experiment):
        if external.module not in references and (digest := expected_digest(run, external)):
            _require_same(run, str(external), external.digest(), digest)


def recorded_models(run: RunDirectory) -> dict[str, RecordedModel]:
    """Read where the models were that a run refers to, by the paths of their components.

    Empty where nothing was recorded, as by the first version.

    Raises:
        RunError: the metadata are damaged.
    """
    recorded = run.read(run.metadata).get("references", {})
    try:
        return cast(dict[str, RecordedModel], plain.read(dict[str, RecordedModel], recorded))
    except ValidationError as error:
        problem = plain.problems(error, recorded, "references")[0]
        raise RunError(f"{run.metadata}: {problem}") from error


def expected_digest(run: RunDirectory, model: ExternalModel) -> str | None:
    """Return the digest that a run has recorded of a model; None if it has none."""
    return recorded_digests(run).get(model.module)


def recorded_digests(run: RunDirectory) -> dict[str, str]:
    """Return the digests of all models that a run refers to, by module, as far as recorded."""
    models = recorded_models(run)
    return {
        **run.read_digests().get("bilm", {}),
        **{
            _module(path): model.sha256
            for path, model in models.items()
            if model.sha256 is not None
        },
    }


def _module(path: str) -> str:
    return path.removeprefix("model.")


def _is_reference(leaf: Leaf) -> bool:
    marks = (mark for part in walk(leaf.hint) for mark in hint_metadata(part))
    return any(isinstance(mark, MustExist) and mark.is_reference for mark in marks)


def _recorded(place: str | Path, run: Path) -> RecordedPath:
    if isinstance(place, RemotePath):
        return RecordedPath(place.url)
    # A folder is read before a biLM of the same name (`resolve_bilm`).
    if isinstance(place, str) and not Path(place).is_dir():
        return RecordedPath(place)
    absolute = Path(place).absolute()
    return RecordedPath(str(place), str(absolute), os.path.relpath(absolute, run.absolute()))


def _located(
    run: RunDirectory,
    model: ExternalModel,
    expected: Mapping[str, str | None],
    offered: Sequence[tuple[Path | str, str]],
) -> ExternalModel:
    digest = expected[model.path]
    for place, digest_there in offered:
        if digest == digest_there or _is_taken_on_trust(expected):
            return model.with_bilm(place)
    reasons = []
    for candidate in _candidates(run, model):
        reason = _refusal(candidate, digest, is_original=candidate == model)
        if reason is None:
            return candidate
        reasons.append(f"\n  {candidate}: {reason}")
    content = "" if digest is None else f" (SHA-256 {_short(digest)})"
    raise RunError(
        f"{run.path}: cannot find the model{content} of {', '.join(model.keys)}; looked for it at"
        f"{''.join(reasons)}\nput it back, or name its folder: --bilm PATH, or bilm=PATH in Python"
    )


def _is_taken_on_trust(expected: Mapping[str, str | None]) -> bool:
    """Return whether an old run has one biLM, tuned with the task, and no digest of it."""
    return list(expected.values()) == [None]


def _candidates(run: RunDirectory, model: ExternalModel) -> list[ExternalModel]:
    """Return where a model may be: relative to the run, its old path, the path in the config."""
    record = recorded_models(run).get(model.path)
    candidates = []
    if record is not None and record.files.keys() == model.files.keys():
        paths = record.files.items()
        relative = {key: path.relative for key, path in paths if path.relative is not None}
        absolute = {key: path.absolute for key, path in paths if path.absolute is not None}
        # A link to the run is followed where what the user wrote leads nowhere.
        for folder in (run.path.absolute(), run.path.resolve()):
            candidates.append({key: folder / place for key, place in relative.items()})
        candidates.append({key: Path(place) for key, place in absolute.items()})
    normalized = (
        {key: Path(os.path.normpath(place)) for key, place in files.items()}
        for files in candidates
        if files.keys() == model.files.keys()
    )
    models = [*(replace(model, files=files) for files in normalized), model]
    return [each for at, each in enumerate(models) if each not in models[:at]]


def _refusal(candidate: ExternalModel, digest: str | None, *, is_original: bool) -> str | None:
    """Return why a model is not the one with a digest; at its original place, checked later."""
    if not candidate.is_present():
        return "does not exist"
    if is_original:
        return None
    try:
        digest_there = candidate.digest()
    except DataError:
        return "holds no biLM"
    if digest is None or digest_there is None or digest_there == digest:
        return None
    return f"another model, SHA-256 {_short(digest_there)}"


def _require_same(run: RunDirectory, path: str, digest: str | None, expected: str | None) -> None:
    if digest is not None and expected is not None and digest != expected:
        raise RunError(
            f"{run.path}: {path}, with the files that belong to it, is another model now than the "
            f"one that this run was trained on (SHA-256 {_short(digest)}, not {_short(expected)}); "
            "put that one back, or name its folder: --bilm PATH, or bilm=PATH in Python"
        )


def _short(digest: str) -> str:
    return digest[:_SHOWN_DIGITS]
