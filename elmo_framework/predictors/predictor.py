"""The import path `allennlp.predictors.predictor`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, final

from elmo_framework.data.batch import to_device
from elmo_framework.errors import DataError, RunError, allowed
from elmo_framework.experiment.assembly import Assembly
from elmo_framework.models.archival import Archive, load_archive
from elmo_framework.predictors.outputs import JsonObject, form_of
from elmo_framework.predictors.spacy_model import SpacyModel
from elmo_framework.tasks.srl.task import SrlTask
from elmo_framework.training.evaluator import model_output

_ENGLISH = "en_core_web_sm"

ReaderName: TypeAlias = Literal["train", "validation"]


@final
class Predictor:
    """Predicts with the methods of AllenNLP, in outputs with its keys; `load` does more.

        predictor = Predictor.from_path("model.tar.gz")
        predictor.predict(sentence="Anna Kovacs moved to Lisbon.")["tags"]

    Attention matrices and ids of words are not in the outputs, nor is padding of a batch. A head
    that AllenNLP does not have gives the objects of `elmo predict`.

    Args:
        run: the loaded model.
        dataset_reader_to_load: the reader whose tokenizer splits raw text: that of the
            `validation` data or that of the `train` data.
        language: the name or the folder of a model of spaCy, which finds words and sentences, and
            the verbs whose arguments are predicted. By default words and sentences are found by
            the rules for English, and verbs as `elmo predict` finds them; of a run that does not
            know any, such as an imported one, by `en_core_web_sm`.

    Raises:
        RunError: the run predicts nothing, or the model of spaCy is not installed.
    """

    def __init__(
        self,
        run: Assembly,
        *,
        dataset_reader_to_load: ReaderName = "validation",
        language: str | None = None,
    ) -> None:
        self._run, self._head = run, run.head()
        self._form = form_of(self._head.task)
        readers = {
            "train": run.experiment.dataset_reader,
            "validation": run.experiment.validation_dataset_reader,
        }
        if (reader := readers.get(dataset_reader_to_load)) is None:
            choices = allowed(str(dataset_reader_to_load), readers)
            raise RunError(f"dataset_reader_to_load is {dataset_reader_to_load!r}; {choices}")
        spacy = SpacyModel(language or _ENGLISH)
        self._reader = run.input_reader(reader=reader, tokenizer=spacy if language else None)
        knows_verbs = language is None and run.vocabularies.counted("predicates")
        is_srl = isinstance(self._head.task, SrlTask)
        self._verbs = spacy.verbs if is_srl and not knows_verbs else None
        self._collate = self._head.collator(run.vocabularies)

    @classmethod
    def from_path(
        cls,
        archive_path: Path | str,
        predictor_name: str | None = None,
        cuda_device: int = -1,
        dataset_reader_to_load: ReaderName = "validation",
        frozen: bool = True,
        import_plugins: bool = True,
        overrides: str | Mapping[str, Any] = "",
        **options: Any,
    ) -> Predictor:
        """Load an archive of AllenNLP or a run, and make a predictor of it.

        Args:
            archive_path: as of `load_archive`.
            predictor_name: is checked; each task has one predictor.
            cuda_device: as of `load_archive`.
            dataset_reader_to_load: see the class.
            frozen: must be true.
            import_plugins: has no effect: installed plugins are always known.
            overrides: must be empty.
            options: `language`; `packages` and `bilm` of `load_archive`.

        Raises:
            ElmoFrameworkError: as of `load_archive`; or an argument has no counterpart here.
            TypeError: unknown option.
        """
        loading = {name: options.pop(name) for name in ("packages", "bilm") if name in options}
        archive = load_archive(archive_path, cuda_device, overrides, **loading)
        return cls.from_archive(archive, predictor_name, dataset_reader_to_load, frozen, options)

    @classmethod
    def from_archive(
        cls,
        archive: Archive,
        predictor_name: str | None = None,
        dataset_reader_to_load: ReaderName = "validation",
        frozen: bool = True,
        extra_args: Mapping[str, Any] | None = None,
    ) -> Predictor:
        """Make a predictor of a loaded archive, with the arguments and errors of `from_path`."""
        if not frozen:
            raise RunError("frozen=False: a predictor has no dropout; remove the argument")
        predictor = cls(
            archive.run, dataset_reader_to_load=dataset_reader_to_load, **(extra_args or {})
        )
        names = predictor._form.names
        if predictor_name is not None and predictor._form.name and predictor_name not in names:
            raise RunError(f"predictor {predictor_name!r} is not for this model; use {names[0]!r}")
        return predictor

    def predict(self, *texts: str, **inputs: Any) -> JsonObject:
        """Predict for one input.

        The arguments are `sentence`; `premise` and `hypothesis`; `question` and `passage`; or
        `document`. Premise and hypothesis have to be named, as different versions of AllenNLP have
        them in different orders.

        Raises:
            DataError: a text is missing, or cannot be read.
            TypeError: too many texts, or texts that have to be named.
        """
        keys = self._form.keys
        if texts and "premise" in keys:
            raise TypeError("name the texts: predict(premise=..., hypothesis=...)")
        if len(texts) > len(keys):
            raise TypeError(f"predict takes {', '.join(keys)}; found {len(texts)} texts")
        return self.predict_json({**dict(zip(keys, texts, strict=False)), **inputs})

    def predict_tokenized(self, tokens: Sequence[str]) -> JsonObject:
        """Predict for the words of a sentence or, for coreference, of a document.

        Raises:
            RunError: the task takes several texts.
        """
        key = self._form.tokens
        if key is None:
            raise RunError(f"the inputs of this model are {', '.join(self._form.keys)}")
        words = list(tokens)
        return self.predict_json({key: [words] if key == "sentences" else words})

    def predict_json(self, inputs: Mapping[str, Any]) -> JsonObject:
        """Predict for the texts of an object; see `predict`. Other keys have no effect.

        Raises:
            DataError: a text is missing, or cannot be read.
        """
        return self.predict_batch_json([inputs])[0]

    def predict_batch_json(self, inputs: Sequence[Mapping[str, Any]]) -> list[JsonObject]:
        """Predict for objects, read as one batch.

        Raises:
            DataError: a text is missing, or cannot be read; the message has the number of it.
        """
        read = self._reader.of_all(self._with_verbs(list(inputs)))
        return self.predict_batch_instance([each.example for each in read])

    def predict_instance(self, instance: Any) -> JsonObject:
        """Predict for an example of a dataset reader."""
        return self.predict_batch_instance([instance])[0]

    def predict_batch_instance(self, instances: Sequence[Any]) -> list[JsonObject]:
        """Predict for examples of a dataset reader, read as one batch."""
        if not instances:
            return []
        run = self._run
        batch = to_device(self._collate(instances), run.device)
        precision = run.experiment.trainer.precision
        with model_output(self._head, batch, run.device, precision) as output:
            predictions = self._head.predict(output, batch)
            return [*self._form.rows(self._head, output, batch, predictions)]

    def load_line(self, line: str) -> JsonObject:
        """Read a line of a file as the object that `predict_json` takes.

        Raises:
            DataError: the line is not a JSON object.
        """
        try:
            values = json.loads(line)
        except ValueError as error:
            raise DataError(f"not JSON: {error}") from error
        if not isinstance(values, dict):
            raise DataError("expected a JSON object")
        return values

    def dump_line(self, outputs: JsonObject) -> str:
        """Return an output as a line of a file."""
        return json.dumps(outputs) + "\n"

    def _with_verbs(self, inputs: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        """Add the positions of the verbs, if nothing else finds the predicates of an input."""
        if self._verbs is None:
            yield from inputs
            return
        for values, read in zip(inputs, self._reader.of_all(inputs), strict=True):
            words = list(read.example.words)
            is_given = "predicates" in values
            yield values if is_given else {"words": words, "predicates": self._verbs(words)}
