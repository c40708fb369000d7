"""Run a model that `elmo export --format onnx` wrote, with NumPy and onnxruntime alone.

Copy the folder of the model wherever you like: this file is in it.

    from elmo_onnx import Model

    model = Model("folder")
    model.predict([["Anna", "lives", "in", "Lisbon"]])

On the command line, one sentence per line with spaces between words, and for pairs a tab between
the two:

    python elmo_onnx.py < sentences.txt
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

FORMAT = 1
_PADDING, _BEGIN, _END, _FIRST = 0, 1, 2, 3
_BOUNDARIES = {"<S>": 257, "</S>": 258}
"""The ids of the words that mark the boundaries of a sentence."""


class Model:
    """A tagger, a classifier, a classifier of pairs, or a biLM.

    Args:
        folder: with `model.onnx` and `model.json`; that of this file by default.
        threads: of the CPU; all cores by default.

    Attributes:
        kind: what it predicts: `tags`, `label`, `label_of_pair` or `layers`.
        labels: the tags or labels, by their numbers.
        is_calibrated: whether the probabilities of labels are calibrated.

    Raises:
        ValueError: the files are not of an export, or of one with a newer format.
    """

    def __init__(self, folder: str | Path | None = None, *, threads: int | None = None) -> None:
        import onnxruntime  # type: ignore[import-untyped]

        place = Path(__file__).parent if folder is None else Path(folder)
        about = json.loads((place / "model.json").read_text(encoding="utf-8"))
        if "format" not in about:
            raise ValueError(f"{place / 'model.json'}: not of an ONNX export: it has no 'format'")
        if about["format"] > FORMAT:
            raise ValueError(
                f"{place}: an ONNX export of format {about['format']}, written by elmo-framework "
                f"{about['elmo_framework']}; this elmo_onnx.py reads formats up to {FORMAT}: use "
                "the one next to the model, or pip install --upgrade elmo-framework"
            )
        self.kind: str = about["kind"]
        self.labels: list[str] = about["labels"]
        self.is_calibrated: bool = about.get("calibrated", False)
        options = onnxruntime.SessionOptions()
        if threads is not None:
            options.intra_op_num_threads = threads
        providers = ["CPUExecutionProvider"]
        self._session = onnxruntime.InferenceSession(place / "model.onnx", options, providers)
        self._tables = {name: _table(each) for name, each in about["tables"].items()}

    def predict(self, inputs: Iterable[Sequence[Any]], *, batch_size: int = 32) -> list[Any]:
        """Predict for sentences, or for pairs of them.

        Args:
            inputs: the words of each sentence; for pairs, two sentences each.
            batch_size: number of inputs in a batch; they are sorted by length.

        Returns:
            For each input: its tags; its label with the probability of each label; or the layers
            "layers words dim" of a biLM.

        Raises:
            TypeError: a sentence is a text, not its words.
            ValueError: a pair does not have two sentences.
        """
        rows = [self._sentences(row, number) for number, row in enumerate(inputs, start=1)]
        results: list[Any] = [None] * len(rows)
        order = sorted(range(len(rows)), key=lambda row: max(map(len, rows[row])))
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            # The first sentence of every input, then the second.
            sentences = [rows[row][number] for number in range(len(rows[0])) for row in batch]
            predictions = self._predictions(self.run(sentences), sentences)
            for row, prediction in zip(batch, predictions, strict=True):
                results[row] = prediction
        return results

    def run(self, sentences: Sequence[Sequence[str]]) -> dict[str, np.ndarray[Any, Any]]:
        """Return the outputs of one batch as arrays, by name: `logits`, `tags` or `layers`."""
        names = [output.name for output in self._session.get_outputs()]
        return dict(zip(names, self._session.run(None, self._arrays(sentences)), strict=True))

    @property
    def _is_pair(self) -> bool:
        return self.kind == "label_of_pair"

    def _sentences(self, row: Sequence[Any], number: int) -> list[list[str]]:
        sentences = [row] if not self._is_pair or isinstance(row, str) else [*row]
        for sentence in sentences:
            if isinstance(sentence, str):
                raise TypeError(
                    f"input {number}: expected a list of words, found {sentence[:40]!r}"
                )
        if self._is_pair and len(sentences) != 2:
            raise ValueError(f"input {number}: expected two sentences, found {len(sentences)}")
        return [[*sentence] for sentence in sentences]

    def _predictions(
        self, outputs: dict[str, np.ndarray[Any, Any]], sentences: Sequence[Sequence[str]]
    ) -> Iterator[Any]:
        if self.kind == "tags":
            for tags, words in zip(outputs["tags"].tolist(), sentences, strict=True):
                yield [self.labels[tag] for tag in tags[: len(words)]]
        elif self.kind == "layers":
            for row, words in enumerate(sentences):
                yield outputs["layers"][:, row, : len(words)]
        else:
            logits = outputs["logits"]
            scores = np.exp(logits - logits.max(axis=1, keepdims=True))
            for row in scores / scores.sum(axis=1, keepdims=True):
                probabilities = dict(zip(self.labels, row.tolist(), strict=True))
                yield self.labels[int(row.argmax())], probabilities

    def _arrays(self, sentences: Sequence[Sequence[str]]) -> dict[str, np.ndarray[Any, Any]]:
        rows: dict[str, int] = {}
        # One word at least, so that no array is empty.
        places = np.zeros((len(sentences), 2 + max(1, *map(len, sentences))), dtype=np.int64)
        for place, words in zip(places, sentences, strict=True):
            if words:
                inner = [rows.setdefault(word, _FIRST + len(rows)) for word in words]
                place[: len(words) + 2] = [_BEGIN, *inner, _END]
        tables = {name: table(list(rows)) for name, table in self._tables.items()}
        return {"places": places, **tables}


def _table(about: dict[str, Any]) -> Callable[[list[str]], np.ndarray[Any, Any]]:
    """Return what makes an input: a row for padding, one for each boundary, and the words'."""
    if about["kind"] == "words":
        return _WordTable(about).rows
    if about["kind"] == "bytes":
        return lambda words: _byte_rows(words, about["max_characters"])
    return lambda words: _character_rows(words, about["max_characters"], about["margin"])


class _WordTable:
    def __init__(self, about: dict[str, Any]) -> None:
        # 0 is padding and 1 an unknown word.
        self._ids = {word: number for number, word in enumerate(about["words"], start=2)}
        self._lowercase, self._case_fallback = about["lowercase"], about["case_fallback"]

    def rows(self, words: list[str]) -> np.ndarray[Any, Any]:
        return np.array([0] * _FIRST + [self._id(word) for word in words], dtype=np.int64)

    def _id(self, word: str) -> int:
        first = word.lower() if self._lowercase else word
        for form in (first, word.lower()) if self._case_fallback else (first,):
            if form in self._ids:
                return self._ids[form]
        return 1


def _byte_rows(words: list[str], maximum: int) -> np.ndarray[Any, Any]:
    """Return UTF-8 bytes plus 1 between the marks 257 and 258, as wide as the longest word."""
    spelled = [word.encode("utf-8", errors="ignore")[: maximum - 2] for word in words]
    rows = np.zeros((_FIRST + len(words), 2 + max(map(len, spelled), default=0)), dtype=np.int64)
    for row, spelling in zip(rows[_FIRST:], spelled, strict=True):
        row[: len(spelling) + 2] = [257, *(byte + 1 for byte in spelling), 258]
    return rows


def _character_rows(words: list[str], maximum: int, margin: int) -> np.ndarray[Any, Any]:
    """Return the ids of bilm-tf: 259, UTF-8 bytes plus 1, 260, and 261 up to the end.

    All windows of padding alone have the same value, so a margin of the widest filter is enough.
    """
    spelled = [_spelling(word)[: maximum - 2] for word in ("<S>", "</S>", *words)]
    width = min(maximum, max(map(len, spelled)) + 2 + margin)
    rows = np.zeros((1 + len(spelled), width), dtype=np.int64)
    rows[1:] = 261
    for row, spelling in zip(rows[1:], spelled, strict=True):
        row[: len(spelling) + 2] = [259, *spelling, 260]
    return rows


def _spelling(word: str) -> list[int]:
    if word in _BOUNDARIES:
        return [_BOUNDARIES[word]]
    return [byte + 1 for byte in word.encode("utf-8", errors="ignore")]


def main() -> None:
    """Predict for the lines of standard input; print a line of JSON for each.

    The exit code is 2 if the model cannot be read, or a line is not an input.
    """
    try:
        model = Model()
        inputs = [*_inputs(sys.stdin, is_pair=model.kind == "label_of_pair")]
    except ValueError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)
    for prediction in model.predict(inputs):
        value = prediction.tolist() if isinstance(prediction, np.ndarray) else prediction
        sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


def _inputs(lines: Iterable[str], *, is_pair: bool) -> Iterator[list[Any]]:
    for number, line in enumerate(lines, start=1):
        sentences = [part.split() for part in line.split("\t")]
        if is_pair and len(sentences) != 2:
            raise ValueError(
                f"line {number}: expected two sentences with a tab between them, "
                f"found {len(sentences)}"
            )
        yield sentences if is_pair else line.split()


if __name__ == "__main__":
    main()
