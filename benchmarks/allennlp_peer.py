"""Build, archive and run models of AllenNLP, in its environment.

`PEERS/an/bin/python` has AllenNLP 2.10.1; `allennlp_compat.py`, which lets it be imported, must be
on the path.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

DATA = Path(__file__).parents[1] / "tests/fixtures/first_version/data"
_NUM_COLUMNS_BEFORE_PARSE = 5
_WITH_PARSES = {"srl", "coref"}
_MODULES = (
    *("classification", "coref", "lm", "pair_classification", "rc"),
    *("structured_prediction", "tagging"),
)


def import_allennlp() -> None:
    """Import AllenNLP and its models."""
    import_module("allennlp_compat")
    # Gone from transformers, and AllenNLP makes a subclass of it that nothing here uses.
    type(import_module("transformers")).AdamW = torch.optim.AdamW  # type: ignore[attr-defined]
    for name in _MODULES:
        import_module(f"allennlp_models.{name}")
    import_module("nltk").data.path.append(str(DATA.parents[1]))  # it reads no other folders
    # The words of the data are the same without a model of spaCy.
    blank = import_module("spacy").blank
    tokenizer = import_module("allennlp.data.tokenizers.spacy_tokenizer")
    tokenizer.get_spacy_model = lambda *_, **__: blank("en")


def built(config: Mapping[str, Any], file: Path) -> tuple[Any, list[Any]]:
    """Return the model of a config for the words of a file, and the examples of the file."""
    from allennlp.common import Params
    from allennlp.data import DatasetReader, Vocabulary
    from allennlp.models import Model

    kind = config["model"]["type"]
    with TemporaryDirectory() as root:
        data = parsed(Path(root), kind, file) if kind in _WITH_PARSES else file
        reader = DatasetReader.from_params(Params(deepcopy(config["dataset_reader"])))
        examples = list(reader.read(str(data)))
    vocabulary = Vocabulary.from_instances(examples)
    for example in examples:
        example.index_fields(vocabulary)
    model = Model.from_params(Params(deepcopy(config["model"])), vocab=vocabulary)
    return model.eval(), examples


def write_archive(model: Any, config: Mapping[str, Any], archive: Path) -> None:
    """Write a model as `model.tar.gz`."""
    from allennlp.models.archival import archive_model

    with TemporaryDirectory() as root:
        (Path(root) / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
        model.vocab.save_to_files(f"{root}/vocabulary")
        torch.save(model.state_dict(), f"{root}/best.th")
        archive_model(root)
        shutil.copy(f"{root}/model.tar.gz", archive)


def outputs_alone(model: Any, examples: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the outputs of each example; those of a coreference model have `scores`, too.

    Each example is a batch, so that no padding is among the outputs, and each text starts from
    zero: AllenNLP's ELMo continues from the text before, of another batch or of a pair.
    """
    for module in model.modules():
        if hasattr(module, "stateful"):
            module.stateful = False
    with torch.no_grad():
        return [_outputs(model, example) for example in examples]


def _outputs(model: Any, example: Any) -> dict[str, Any]:
    outputs: dict[str, Any]
    if not hasattr(model, "_compute_coreference_scores"):
        (outputs,) = model.forward_on_instances([example])
        return outputs
    compute, scores = model._compute_coreference_scores, []

    def computed(*arguments: Any) -> Any:
        scores.append(compute(*arguments))
        return scores[-1]

    model._compute_coreference_scores = computed
    (outputs,) = model.forward_on_instances([example])
    model._compute_coreference_scores = compute
    # For each span: those of no antecedent and of the spans before it, the nearest first.
    rows = (row[: 1 + number] for number, row in enumerate(scores[0][0].tolist()))
    return {**outputs, "scores": [*rows]}


def parsed(root: Path, kind: str, file: Path) -> Path:
    """Return columns of CoNLL-2012 with parses, which AllenNLP's readers need.

    The reader of propositions takes a folder.
    """
    folder = root / "parsed"
    folder.mkdir()
    blocks = file.read_text(encoding="utf-8").split("\n\n")
    text = "\n\n".join("\n".join(_with_parse(block.splitlines())) for block in blocks)
    columns = folder / file.name
    columns.write_text(text, encoding="utf-8")
    return folder if kind == "srl" else columns


def _with_parse(lines: Iterable[str]) -> list[str]:
    lines = [*lines]
    rows = [line.split() for line in lines if not line.startswith("#")]
    for number, row in enumerate(rows):
        opening, closing = "(S" * (number == 0), ")" * (number == len(rows) - 1)
        row[_NUM_COLUMNS_BEFORE_PARSE] = f"{opening}*{closing}"
    left = iter(rows)
    return [line if line.startswith("#") else " ".join(next(left)) for line in lines]


def rounded(value: Any) -> Any:
    """Return a value as JSON has it, with six decimal places; a tree as one line."""
    if type(value).__name__ == "Tree":
        return " ".join(str(value).split())
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return round(value, 6) if isinstance(value, float) else value
