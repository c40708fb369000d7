"""The half of `archive_agreement.py` that AllenNLP runs: models, archives and predictions.

    PYTHONPATH=SCRIPTS PEERS/an/bin/python benchmarks/archive_agreement_allennlp.py < JOBS

Each job has a config, its data, and where the archive and, if they are wanted, the outputs go.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
import warnings
from copy import deepcopy
from importlib import import_module
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from measuring import say

_SEED, _NOISE = 1, 0.05
_LEARNING_RATE, _GRAD_NORM = 0.001, 5.0
_MIN_COUNT = 2
"""Of words: those that occur once are unknown."""

_OUTPUTS = (
    *("logits", "label_logits", "class_probabilities", "span_start_logits", "span_end_logits"),
    *("tags", "label", "best_span_str", "clusters"),
)


def main() -> int:
    """Write the archive and the outputs of each job."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    import_module("allennlp_archives").import_allennlp()
    for job in json.load(sys.stdin):
        started = time.perf_counter()
        _run(job)
        say(f"AllenNLP: {job['name']}: {time.perf_counter() - started:.0f} s", file=sys.stderr)
    return 0


def _run(job: dict[str, Any]) -> None:
    from allennlp.common import Params
    from allennlp.data import DatasetReader, Vocabulary
    from allennlp.models import Model

    torch.manual_seed(_SEED)
    config = job["config"]
    reader = DatasetReader.from_params(Params(deepcopy(config["dataset_reader"])))
    examples = examples_of(reader, config["model"]["type"], Path(job["data"]))
    has_words = "tokens" in config["dataset_reader"]["token_indexers"]
    min_count = {"tokens": _MIN_COUNT} if has_words else {}
    vocabulary = Vocabulary.from_instances(examples, min_count=min_count)
    for example in examples:
        example.index_fields(vocabulary)
    model = Model.from_params(Params(deepcopy(config["model"])), vocab=vocabulary)
    if job["num_updates"]:
        _train(model, examples, job)
    else:
        _move(model)
    model.eval()
    _reset(model)
    _archive(config, vocabulary, model, Path(job["archive"]))
    if job["outputs"] is not None:
        torch.save(_outputs(model, examples), job["outputs"])


def examples_of(reader: Any, kind: str, data: Path) -> list[Any]:
    """Return the examples of a file; the reader of propositions takes a folder."""
    import_module("nltk").data.path.append(str(data.parent))  # it reads no other folders
    return list(reader.read(str(data.parent if kind == "srl" else data)))


def _outputs(model: Any, examples: list[Any]) -> list[dict[str, Any]]:
    scores = _recorded_scores(model) if hasattr(model, "_antecedent_scorer") else None
    with torch.no_grad():
        # One at a time, so that no padding is among the outputs.
        outputs = [model.forward_on_instances([each])[0] for each in examples]
    rows = [{key: _plain(each[key]) for key in _OUTPUTS if key in each} for each in outputs]
    for row, each in zip(rows, outputs, strict=True):
        if "trees" in each:
            row["trees"] = " ".join(str(each["trees"]).split())
    for row, each in zip(rows, scores or (), strict=False):
        row["scores"] = each
    return rows


def _recorded_scores(model: Any) -> list[list[list[float]]]:
    """Return a list to which a coreference model adds the scores of each span's antecedents."""
    recorded: list[list[list[float]]] = []
    compute = model._compute_coreference_scores

    def computed(*arguments: Any) -> Any:
        scores = compute(*arguments)
        rows = enumerate(scores[0].tolist())
        recorded.append([row[: 1 + number] for number, row in rows])  # of no antecedent, too
        return scores

    model._compute_coreference_scores = computed
    return recorded


def _plain(value: Any) -> Any:
    return torch.as_tensor(value).clone() if hasattr(value, "tolist") else value


def _train(model: Any, examples: list[Any], job: dict[str, Any]) -> None:
    from allennlp.data import Batch

    size = job["batch_size"]
    parameters = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.Adam(parameters, lr=_LEARNING_RATE)
    starts = cycle(range(0, max(1, len(examples) - size + 1), size))
    model.train()
    for start in islice(starts, job["num_updates"]):
        batch = Batch(examples[start : start + size])
        batch.index_instances(model.vocab)
        optimizer.zero_grad()
        model(**batch.as_tensor_dict())["loss"].backward()
        torch.nn.utils.clip_grad_norm_(parameters, _GRAD_NORM)
        optimizer.step()


def _move(model: Any) -> None:
    """Move the weights from where they start, as zeros would hide what they multiply."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "_constraint_mask" not in name and "_elmo_lstm" not in name:
                parameter.add_(torch.randn_like(parameter) * _NOISE)


def _reset(model: Any) -> None:
    """Forget what a biLM carries from batch to batch, as a loaded archive has nothing of it."""
    for module in model.modules():
        if type(module).__name__ == "ElmoLstm":
            module.reset_states()


def _archive(config: dict[str, Any], vocabulary: Any, model: Any, path: Path) -> None:
    from allennlp.models.archival import archive_model

    with TemporaryDirectory() as root:
        run = Path(root)
        (run / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
        vocabulary.save_to_files(str(run / "vocabulary"))
        torch.save(model.state_dict(), run / "best.th")
        archive_model(root)
        shutil.move(run / "model.tar.gz", path)


if __name__ == "__main__":
    sys.exit(main())
