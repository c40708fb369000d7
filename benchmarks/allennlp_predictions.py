"""Outputs of AllenNLP's predictors for its archives in `tests/fixtures/allennlp`.

    PYTHONPATH=SCRIPTS PEERS/an/bin/python benchmarks/allennlp_predictions.py \
        tests/fixtures/allennlp

Run it as `allennlp_archives.py`. A pipeline of rules replaces the trained model of spaCy.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from importlib import import_module
from pathlib import Path
from typing import Any

from allennlp_peer import import_allennlp, rounded
from measuring import say

_VERBS = ("came", "fed", "hunt", "left", "like", "said", "sleep")
_PAIRS = (
    {"premise": "Two boys kick a ball in the park.", "hypothesis": "The boys sleep in bed."},
    {"premise": "Children play outside.", "hypothesis": "A ball."},
)
_SENTENCES = ({"sentence": "Maria Lund left Oslo on Monday."}, {"sentence": "The dog sleeps."})
_TEXTS = ({"sentence": "It 's good fun ."}, {"sentence": "Fine ."})
_PASSAGE = "The lighthouse of Norvik was built in 1871. Its lamp burned whale oil until 1904."
_INPUTS: dict[str, tuple[dict[str, str], ...]] = {
    "crf_tagger": _SENTENCES,
    "simple_tagger": _SENTENCES,
    "esim": _PAIRS,
    "decomposable_attention": _PAIRS,
    "bcn": _TEXTS,
    "basic_classifier": _TEXTS,
    "bidaf": (
        {"question": "When was the lighthouse of Norvik built?", "passage": _PASSAGE},
        {"question": "Who was the keeper?", "passage": "Its keeper was Anna Lund."},
    ),
    "srl": (
        {"sentence": "Cats hunt what they like."},
        {"sentence": "Milk, Ann said, came yesterday."},
        {"sentence": "Good morning!"},
    ),
    "coref": (
        {"document": "Maria left. She said that the dog and the cat sleep. It slept."},
        {"document": "Ann saw a dog."},
    ),
}
_OMITTED = {
    *("passage_question_attention", "h2p_attention", "p2h_attention", "token_ids"),
}


def main() -> int:
    """Write the outputs of all predictors."""
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="of the archives")
    folder = parser.parse_args().folder
    import_allennlp()
    _replace_readers_of_files()
    outputs = {kind: [*_predicted(kind, folder)] for kind in _INPUTS}
    lines = (f" {json.dumps(kind)}: {json.dumps(rows)}" for kind, rows in outputs.items())
    text = ",\n".join([f' "verbs": {json.dumps(_VERBS)}', *lines])
    (folder / "predictions.json").write_text(f"{{\n{text}\n}}\n", encoding="utf-8")
    return 0


def _replace_readers_of_files() -> None:
    """Read configs as JSON, and use the same rules wherever a model of spaCy is loaded."""
    params: Any = import_module("allennlp.common.params")
    params.evaluate_file = lambda path, **_: Path(path).read_text(encoding="utf-8")
    params.evaluate_snippet = lambda _, text, **__: text
    pipeline = import_module("spacy").blank("en")
    pipeline.add_pipe("sentencizer")
    rules = pipeline.add_pipe("attribute_ruler")
    rules.add([[{"LOWER": verb}] for verb in _VERBS], {"POS": "VERB"})
    for module in (
        "allennlp.data.tokenizers.spacy_tokenizer",
        "allennlp_models.coref.predictors.coref",
    ):
        loaded: Any = import_module(module)
        loaded.get_spacy_model = lambda *_, **__: pipeline


def _predicted(kind: str, folder: Path) -> list[dict[str, Any]]:
    from allennlp.predictors.predictor import Predictor

    name = "text_classifier" if kind == "bcn" else None
    predictor = Predictor.from_path(folder / f"{kind}.tar.gz", name)
    rows = []
    for inputs in _INPUTS[kind]:
        output = predictor.predict(**inputs)
        kept = {key: rounded(value) for key, value in output.items() if key not in _OMITTED}
        rows.append({"inputs": inputs, "output": kept})
    say(f"{kind}: {', '.join(rows[0]['output'])}")
    return rows


if __name__ == "__main__":
    sys.exit(main())
