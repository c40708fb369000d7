"""Scores a head of AllenNLP that is trained as ours: on the same examples and word vectors.

    python benchmarks/head_scores.py CONFIG --peers DIR --scripts DIR --output-dir DIR

AllenNLP's head has the sizes, optimizer, batch size and epochs of CONFIG, its own initial weights,
and the vectors that our model starts from. Its predictions for the validation data are written at
each evaluation, and scored here by our metrics; as in our training, the best evaluation counts. The
config must have no ELMo. Train ours with `elmo train CONFIG`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from compare import folder
from measuring import say
from pydantic import TypeAdapter
from simple_baselines import scores_of, terms_of

from elmo_framework import components
from elmo_framework.config.load import Config
from elmo_framework.config.parse import parse
from elmo_framework.config.resolve import filled
from elmo_framework.config.signature import component_class
from elmo_framework.data.labels import Classification
from elmo_framework.data.text import collate_text
from elmo_framework.embedders.embedding import EmbeddingTokenEmbedder
from elmo_framework.errors import ElmoFrameworkError, RunError
from elmo_framework.experiment.assembly import Assembly
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.metrics.coreference import Resolution
from elmo_framework.metrics.squad import Answer
from elmo_framework.metrics.srl import Proposition
from elmo_framework.model.model import Model
from elmo_framework.model.part import parts_of
from elmo_framework.tasks.coreference.example import Document
from elmo_framework.tasks.question_answering.example import PassageQuestion, Span
from elmo_framework.tasks.srl.example import SrlExample
from elmo_framework.tasks.tagging.task import TaggedSentence

_HERE = Path(__file__).parent


def main() -> int:
    """Write the data, train AllenNLP's head, print its scores; return 1 if it failed."""
    arguments = _arguments()
    components.load()
    data = arguments.output_dir / "data.json"
    try:
        config = Config.load(arguments.config, overrides=arguments.override)
        parsed = parse(Experiment, config.raw, source=config.source)
        experiment = parsed.build()
        settings = shared_settings(config.raw, filled(parsed))
        arguments.output_dir.mkdir(parents=True, exist_ok=True)
        write_data(experiment, settings, data)
    except ElmoFrameworkError as error:
        say(f"error: {error}", file=sys.stderr)
        return 1
    script = [
        str(_HERE / "head_scores_allennlp.py"),
        str(data),
        "--scripts",
        str(arguments.scripts),
    ]
    python = str(arguments.peers.absolute() / "an/bin/python")
    if subprocess.run([python, "-W", "ignore", *script], check=False).returncode:
        return 1
    best, rows = best_scores(experiment, arguments.output_dir)
    metric = experiment.trainer.validation_metric[1:]
    for path, scores in rows.items():
        say(f"{path.stem}: {metric} {100 * scores[metric]:.2f}{' (best)' if path == best else ''}")
    return 0


def shared_settings(raw: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a config that AllenNLP's head is made and trained by.

    Args:
        raw: the config without defaults: those of AllenNLP are its own.
        config: with all defaults.

    Raises:
        RunError: it has a schedule or a moving average, which are not done here.
    """
    trainer = dict(config["trainer"])
    schedule = trainer["learning_rate_scheduler"]
    if schedule["type"] != "constant" or trainer["moving_average"] is not None:
        raise RunError(
            "trainer: AllenNLP's head is trained with a constant rate, and without a moving "
            "average; pass -o trainer.learning_rate_scheduler=constant and "
            "-o trainer.moving_average=null, here and to elmo train"
        )
    trainer["optimizer"] = raw["trainer"]["optimizer"]
    kept = {key: config[key] for key in ("data_loader", "random_seed")}
    return {"model": raw["model"], "trainer": trainer, **kept}


def write_data(experiment: Experiment, settings: Mapping[str, Any], path: Path) -> None:
    """Write settings, words and labels, the examples, and the vectors that our model starts from.

    Args:
        experiment: built from the config.
        settings: `shared_settings`.
        path: of the file.

    Raises:
        DataError: some of the data cannot be read.
    """
    assembly = Assembly.build(experiment, device=torch.device("cpu"))
    splits = {split: list(experiment.examples(split)) for split in ("train", "validation")}
    task = assembly.model.task
    adapter: TypeAdapter[Any] = TypeAdapter(task.example_type)
    # AllenNLP cannot read examples with a label that it does not know.
    counts = task.count(splits["train"] + splits["validation"])
    words = list(counts["words"])
    content = {
        "config": settings,
        "words": words,
        "labels": list(counts.get("labels", ())),
        "vectors": word_vectors(assembly.model, words),
        **{
            split: [adapter.dump_python(each, mode="json") for each in examples]
            for split, examples in splits.items()
        },
    }
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def word_vectors(model: Model[Any], words: Sequence[str]) -> dict[str, list[list[float]]]:
    """Return the initial vectors of words, by the name of the embedder."""
    vectors = {}
    for name, part in parts_of(model):
        if isinstance(part, EmbeddingTokenEmbedder):
            text = collate_text([tuple(words)], part.indexers)
            vectors[name.rpartition(".")[2]] = part(text)[0].detach().tolist()
    return vectors


def best_scores(
    experiment: Experiment, directory: Path
) -> tuple[Path, dict[Path, dict[str, float]]]:
    """Score the predictions of all evaluations; return the best, and all scores in order."""
    task = component_class(experiment.model.factory).task
    examples = list(experiment.examples("validation"))
    rows = {}
    for path in sorted(directory.glob("evaluation-*.json")):
        raw = json.loads(path.read_text(encoding="utf-8"))
        predictions = [_prediction(each, own) for each, own in zip(raw, examples, strict=True)]
        rows[path] = scores_of(task, terms_of(task, predictions, examples))
    sign, name = experiment.trainer.validation_metric[0], experiment.trainer.validation_metric[1:]
    best = max(rows, key=lambda path: rows[path][name] * (1 if sign == "+" else -1))
    return best, rows


def _prediction(raw: Any, example: Any) -> Any:
    """Return a prediction of AllenNLP's head as our task knows it."""
    match example:
        case TaggedSentence():
            return tuple(raw)
        case SrlExample():
            ((predicate, _),) = example.propositions or ((None, ()),)
            return (Proposition(predicate, tuple(raw)),)
        case Document():
            clusters = tuple(tuple((start, end) for start, end in cluster) for cluster in raw)
            return Resolution(clusters, ())
        case PassageQuestion():
            start, end = example.passage.characters(Span(*raw))
            return Answer(example.passage.text[start:end], start, end)
    return Classification(raw, {raw: 1.0})


def _arguments() -> Namespace:
    parser = ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("config", type=Path, metavar="CONFIG", help="the config of an experiment")
    parser.add_argument("-o", "--override", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--peers", type=folder, required=True, help="where AllenNLP is installed")
    parser.add_argument("--scripts", type=folder, required=True, help="of allennlp_compat.py")
    parser.add_argument("--output-dir", type=Path, required=True, metavar="DIR")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
