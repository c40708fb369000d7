"""AllenNLP's models and ours from the same configs: parameters, and outputs with equal weights.

    PEERS=DIR .venv/bin/python benchmarks/peer_models.py SCRIPTS

`SCRIPTS` has `allennlp_compat.py`. The configs are those of `peer_configs.py`; the biLM is `mini`.
AllenNLP makes each model with random weights and computes its outputs one example at a time; ours
has the same weights and computes them in one batch. The numbers of parameters are compared with
`tests/golden/allennlp/parameters.json`, which `--write` writes again.
"""

from __future__ import annotations

import json
import re
import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from allennlp_environment import add_scripts_argument, run_allennlp
from measuring import say
from numpy.typing import NDArray
from peer_configs import CONFIGS, ROOT
from peer_language_model import language_model, word_logits

from elmo_framework import load
from elmo_framework.compat.allennlp.archive import import_archive
from elmo_framework.compat.allennlp.parameter_names import Pair, names
from elmo_framework.config.plugins import load_plugins
from elmo_framework.console import render_table
from elmo_framework.data.batch import to_device
from elmo_framework.training.evaluator import inference

TABLE = ROOT / "tests/golden/allennlp/parameters.json"
_TOLERANCE = 1e-5
_ALONE = ("constituency_parser", "layer norm")
"""Models whose outputs depend on the batch: on the longest sentence, or on all layers of ELMo."""

_LANGUAGE_MODEL = "language_model"


@dataclass(frozen=True)
class Comparison:
    """A model of AllenNLP and ours.

    Attributes:
        parameters: a row of the table.
        difference: the largest one of an output.
        largest: the largest output.
    """

    parameters: dict[str, Any]
    difference: float
    largest: float


def main() -> int:
    """Compare all models; return 1 if an output or a number of parameters differs."""
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    add_scripts_argument(parser)
    parser.add_argument("--write", action="store_true", help="write the table of parameters")
    options = parser.parse_args()
    load_plugins(["plugins.allennlp_heads"], asked_by="the benchmark")
    torch.set_num_threads(1)
    with TemporaryDirectory() as folder:
        run_allennlp("peer_models_allennlp.py", [folder], options.scripts)
        compared = {name: _compare(name, Path(folder)) for name in CONFIGS}
    say(render_table(_HEADER, [_cells(name, each) for name, each in compared.items()]))
    table = {name: each.parameters for name, each in compared.items()}
    if options.write:
        TABLE.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")
    recorded = json.loads(TABLE.read_text(encoding="utf-8"))
    differing = [name for name in {**table, **recorded} if table.get(name) != recorded.get(name)]
    differing += [name for name, each in compared.items() if not each.difference <= _TOLERANCE]
    if differing:
        say(f"differ: {', '.join(differing)}")
    return int(bool(differing))


_HEADER = ("model", "parameters in AllenNLP", "here", "largest difference", "of outputs up to")


def _cells(name: str, compared: Comparison) -> tuple[str, ...]:
    counts = (f"{compared.parameters[side]:,}" for side in ("allennlp", "here"))
    return name, *counts, f"{compared.difference:.1e}", f"{compared.largest:.1f}"


def _compare(name: str, folder: Path) -> Comparison:
    theirs = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    compare = _compare_words if name.startswith(_LANGUAGE_MODEL) else _compare_head
    model, pairs, outputs = compare(name, folder / f"{name}.tar.gz", theirs)
    ours = {name: parameter.numel() for name, parameter in model.named_parameters()}
    row = {
        "elmo": "elmo_token_embedder" in json.dumps(CONFIGS[name])
        or "elmo" in CONFIGS[name]["model"],
        "allennlp": sum(theirs["parameters"].values()),
        "here": sum(ours.values()),
        "without_counterpart": without_counterpart(pairs, theirs["parameters"], ours),
    }
    return Comparison(
        row,
        max(float(np.abs(own - their).max()) for own, their in outputs),
        max(float(np.abs(their).max()) for _, their in outputs),
    )


def without_counterpart(
    pairs: Iterable[Pair], theirs: Mapping[str, int], ours: Mapping[str, int]
) -> dict[str, int]:
    """Return by how much AllenNLP's parameters are more than ours, by their names.

    Layers, directions and both kinds of linear layer of an LSTM are added up: there each has a
    bias, here one is the sum.

    Args:
        pairs: AllenNLP's name and ours of each parameter.
        theirs: the number of elements of each parameter.
        ours: that of ours.
    """
    numbers = Counter[str]()
    for name, number in theirs.items():
        numbers[_general(name)] += number
    for name, own in set(pairs):
        if name in theirs and own:
            numbers[_general(name)] -= ours[own]
    return {name: number for name, number in sorted(numbers.items()) if number}


def _general(name: str) -> str:
    name = name.removesuffix("_reverse")
    return re.sub(r"(input|state)(?=_linearity)|\d+|(?<=_)(ih|hh)(?=_)", "*", name)


Outputs = list[tuple[NDArray[Any], NDArray[Any]]]


def _compare_head(
    name: str, archive: Path, theirs: Mapping[str, Any]
) -> tuple[torch.nn.Module, list[Pair], Outputs]:
    with TemporaryDirectory() as temporary:
        translation = import_archive(archive, Path(temporary) / "run")
        run = load(Path(temporary) / "run", device="cpu")
        head, reader = run.head(), run.experiment.dataset_reader
        examples = list(reader.read(Path(CONFIGS[name]["train_data_path"])))
        chosen = [examples[place] for place in theirs["places"]]
        is_alone = any(each in name for each in _ALONE)
        groups = [[each] for each in chosen] if is_alone else [chosen]
        outputs: list[NDArray[Any]] = []
        for group in groups:
            batch = to_device(run.explainer().collate(group), torch.device("cpu"))
            with inference(head):
                outputs += _rows(head(batch))
    has_input_elmo = CONFIGS[name]["model"].get("use_input_elmo") is True
    pairs = names(translation.raw["model"], has_input_elmo=has_input_elmo)
    return head, pairs, _without_padding(outputs, map(_expected, theirs["outputs"]))


def _compare_words(
    name: str, archive: Path, theirs: Mapping[str, Any]
) -> tuple[torch.nn.Module, list[Pair], Outputs]:
    model, pairs, columns = language_model(archive)
    lines = Path(CONFIGS[name]["train_data_path"]).read_text(encoding="utf-8").splitlines()
    outputs = word_logits(model, [lines[place].split() for place in theirs["places"]])
    expected = [np.array(each["logits"])[:, :, columns] for each in theirs["outputs"]]
    return model, pairs, _without_padding(outputs, expected)


def _without_padding(outputs: Iterable[NDArray[Any]], expected: Iterable[NDArray[Any]]) -> Outputs:
    pairs = zip(outputs, expected, strict=True)
    return [(own[tuple(map(slice, their.shape))], their) for own, their in pairs]


def _expected(output: Mapping[str, Any]) -> NDArray[np.float64]:
    """Return the output of an example; of answers and spans, log probabilities."""
    if "span_start_logits" in output:
        both = [output[f"span_{name}_logits"] for name in ("start", "end")]
        # AllenNLP adds a bias, which no softmax depends on.
        return torch.tensor(both).double().log_softmax(1).numpy()
    if "scores" in output:
        width = max(map(len, output["scores"]))
        return np.array([row + [0.0] * (width - len(row)) for row in output["scores"]])
    for name in ("logits", "label_logits"):
        if name in output:
            return np.array(output[name], dtype=np.float64)
    return np.log(np.array(output["class_probabilities"], dtype=np.float64))


def _rows(output: Any) -> Sequence[NDArray[np.float64]]:
    """Return our output of each example, padding included."""
    if hasattr(output, "start_logits"):
        both = torch.stack([output.start_logits, output.end_logits], dim=1)
        return [*both.double().log_softmax(2).numpy()]
    if hasattr(output, "rankings"):
        return [each.choices.nan_to_num(neginf=0.0).double().numpy() for each in output.rankings]
    rows = output.logits.double()
    return [*(rows.log_softmax(-1) if type(output).__name__ == "SpanOutput" else rows).numpy()]


if __name__ == "__main__":
    sys.exit(main())
