"""Compare the predictions of AllenNLP 2.10.1 with ours for its own archives, on real texts.

    PEERS=DIR SCRIPTS=DIR python benchmarks/archive_agreement.py --data DIR --only srl coref

AllenNLP makes each model of `peer_configs.py` twice: with random weights, and trained for some
updates. It writes the archives and its predictions for 200 inputs. The archives are imported here
and predict the same inputs, one at a time. `PEERS` has AllenNLP, `SCRIPTS` its
`allennlp_compat.py`. ELMo is `mini`. AllenNLP continues it from input to input, so here it has
`state: 'carry'`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch
from measuring import say
from peer_configs import CONFIGS, ROOT
from peer_data import KINDS, piece_name, write_piece
from torch import Tensor

from elmo_framework import load
from elmo_framework.compat.allennlp.archive import import_archive
from elmo_framework.config.plugins import load_plugins
from elmo_framework.console import render_table
from elmo_framework.data.batch import to_device
from elmo_framework.training.evaluator import inference

_TOLERANCE = 1e-4
_NUM_INPUTS, _NUM_DOCUMENTS = 200, 8
_NUM_UPDATES, _BATCH_SIZE = 25, 16
_CPU = torch.device("cpu")
_NAMES = [name for kind in KINDS for name in (kind, f"{kind} with ELMo")]


class Compared(NamedTuple):
    """A model of AllenNLP and ours with its weights.

    Attributes:
        num_inputs: sentences, pairs, questions or documents; for `srl`, predicates.
        difference: the largest of logits, or of log probabilities where AllenNLP has no logits.
        scale: the largest of AllenNLP's logits.
        num_labels: all labels that were predicted, such as the tags of all words.
        num_different: those of them that differ.
    """

    num_inputs: int
    difference: float
    scale: float
    num_labels: int
    num_different: int


def main() -> int:
    """Print a table of all models; return 1 if outputs differ by more than 1e-4."""
    options = _options()
    sys.path.insert(0, str(ROOT))
    load_plugins(["plugins.allennlp_heads"], asked_by="this benchmark")
    torch.set_num_threads(1)
    with TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        jobs = _jobs(options, folder.absolute())
        rows, is_equal = [], True
        for job in jobs:
            if not Path(job["outputs"]).exists():
                run_peer([job])
            each = _compared(job)
            is_equal &= each.difference <= _TOLERANCE and not each.num_different
            rows.append(_row(job, each))
            say("  ".join(rows[-1]), file=sys.stderr)
    head = ("model", "weights", "inputs", "difference", "largest", "labels", "different")
    say(render_table(head, rows))
    return int(not is_equal)


def _row(job: Mapping[str, Any], each: Compared) -> tuple[str, ...]:
    weights = f"{job['num_updates']} updates" if job["num_updates"] else "random"
    numbers = f"{each.difference:.1e}", f"{each.scale:.1f}", f"{each.num_labels:,}"
    return job["name"], weights, str(each.num_inputs), *numbers, str(each.num_different)


def _options() -> Namespace:
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the data sets")
    parser.add_argument("--only", nargs="+", choices=_NAMES, default=_NAMES, metavar="MODEL")
    parser.add_argument("--number", type=int, default=_NUM_INPUTS, help="of inputs (200)")
    parser.add_argument("--folder", type=Path, help="keeps what AllenNLP makes, for another run")
    return parser.parse_args()


def _jobs(options: Namespace, folder: Path) -> list[dict[str, Any]]:
    """Write the data; return what AllenNLP is to make."""
    jobs = []
    for name in options.only:
        kind = CONFIGS[name]["model"]["type"]
        data = folder / piece_name(kind)
        number = min(options.number, _NUM_DOCUMENTS) if kind == "coref" else options.number
        write_piece(kind, options.data, number, data)
        config = {**CONFIGS[name], "train_data_path": str(data)}
        for num_updates in (0, _NUM_DOCUMENTS if kind == "coref" else _NUM_UPDATES):
            made = folder / f"{name}, {num_updates}"
            job = {"name": name, "config": config, "data": str(data), "num_updates": num_updates}
            paths = {"archive": f"{made}.tar.gz", "outputs": f"{made}.pt"}
            batch_size = 1 if kind == "coref" else _BATCH_SIZE
            jobs.append({**job, **paths, "batch_size": batch_size})
    return jobs


def run_peer(jobs: Sequence[Mapping[str, Any]]) -> None:
    """Let AllenNLP make archives; see `archive_agreement_allennlp.py`."""
    python = Path(os.environ["PEERS"]) / "an/bin/python"
    script = Path(__file__).with_name("archive_agreement_allennlp.py")
    environment = {**os.environ, "PYTHONPATH": os.environ["SCRIPTS"]}
    command = [str(python), "-W", "ignore", str(script)]
    subprocess.run(command, env=environment, input=json.dumps(jobs), text=True, check=True)


def _compared(job: Mapping[str, Any]) -> Compared:
    expected = torch.load(job["outputs"], weights_only=True)
    with TemporaryDirectory() as temporary:
        run_folder = Path(temporary) / "run"
        import_archive(Path(job["archive"]), run_folder)
        _carry_state(run_folder)
        run = load(run_folder, device="cpu")
        head, collate = run.head(), run.explainer().collate
        examples = list(run.experiment.dataset_reader.read(Path(job["data"])))
        if len(examples) != len(expected):
            raise ValueError(f"{job['name']}: {len(examples)} inputs, AllenNLP {len(expected)}")
        largest, scale, labels, different = 0.0, 0.0, 0, 0
        for example, theirs in zip(examples, expected, strict=True):
            batch = to_device(collate([example]), _CPU)
            with inference(head):
                output = head(batch)
                (prediction,) = head.predict(output, batch)
            for own, other in zip(_scores(output), _their_scores(theirs), strict=True):
                if own.shape != other.shape:
                    raise ValueError(f"{job['name']}: {own.shape} scores, AllenNLP {other.shape}")
                largest = max(largest, float((own - other).abs().max()))
                scale = max(scale, float(other.abs().max()))
            pairs = _labels(prediction, theirs)
            labels += len(pairs)
            different += sum(own != other for own, other in pairs)
    return Compared(len(examples), largest, scale, labels, different)


def _carry_state(run: Path) -> None:
    path = run / "filled_config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    carry(config["model"])
    path.write_text(json.dumps(config), encoding="utf-8")


def carry(model: Any) -> None:
    """Let the biLM of a block continue from batch to batch, as AllenNLP's does."""
    if isinstance(model, dict):
        if model.get("type") == "elmo_token_embedder":
            model["state"] = "carry"
        for inner in model.values():
            carry(inner)


def _their_scores(output: Mapping[str, Any]) -> list[Tensor]:
    """Return the scores of an input, with one row for each place.

    Of answers they are log probabilities, as AllenNLP adds a bias that no softmax depends on.
    """
    if "span_start_logits" in output:
        return [output[f"span_{name}_logits"].log_softmax(0) for name in ("start", "end")]
    if "scores" in output:
        return [torch.tensor(row) for row in output["scores"]]
    for name in ("logits", "label_logits"):
        if name in output and "trees" not in output and not _has_roles(output):
            return [output[name]]
    return [output["class_probabilities"].log()]


def _has_roles(output: Mapping[str, Any]) -> bool:
    return {"class_probabilities", "tags"} <= output.keys() and "logits" not in output


def _scores(output: Any) -> list[Tensor]:
    if hasattr(output, "start_logits"):
        return [each[0].log_softmax(0) for each in (output.start_logits, output.end_logits)]
    if hasattr(output, "rankings"):
        rows = output.rankings[0].choices
        return [row[row.isfinite()] for row in rows]
    logits = output.logits[0]
    return [logits.log_softmax(-1) if type(output).__name__ == "SpanOutput" else logits]


def _labels(prediction: Any, theirs: Mapping[str, Any]) -> Sequence[tuple[Any, Any]]:
    """Return pairs of our label and theirs."""
    if "best_span_str" in theirs:
        return [(prediction.text, theirs["best_span_str"])]
    if "clusters" in theirs:
        own = sorted(map(list, prediction.clusters))
        return [(own, sorted(sorted(map(tuple, each)) for each in theirs["clusters"]))]
    if "label" in theirs:
        return [(prediction.label, theirs["label"])]
    if "trees" in theirs:
        from plugins.allennlp_heads.trees import parse_tree

        _, tree = parse_tree(theirs["trees"])
        spans = [each for each in tree.constituents if each.label not in ("NO", "LABEL")]
        return [(list(prediction), spans)]
    tags = prediction[0].tags if hasattr(prediction[0], "tags") else prediction
    return list(zip(tags, theirs["tags"], strict=True))


if __name__ == "__main__":
    sys.exit(main())
