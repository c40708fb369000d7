"""Write a run as `model.tar.gz` of AllenNLP 2.10, the inverse of `archive`."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elmo_framework.compat.allennlp.exported_elmo import elmo_weights
from elmo_framework.compat.allennlp.exported_embedders import Embedded
from elmo_framework.compat.allennlp.exported_models import exported_model
from elmo_framework.compat.allennlp.exported_readers import exported_reader
from elmo_framework.compat.allennlp.exported_tensors import exported_weights
from elmo_framework.compat.allennlp.load import load
from elmo_framework.compat.allennlp.parameter_names import names
from elmo_framework.compat.allennlp.rules import Context, Place
from elmo_framework.compat.allennlp.tensors import INPUT_WEIGHT, input_columns
from elmo_framework.config.resolve import filled
from elmo_framework.errors import ConfigError, RunError
from elmo_framework.experiment.load_run import read_experiment
from elmo_framework.experiment.references import BiLmPaths
from elmo_framework.io.archives import compressed_tar
from elmo_framework.model.head import Head
from elmo_framework.nn.crf import ConditionalRandomField

_UNPADDED = ("*tags", "*labels")


@torch.no_grad()
def export_allennlp(
    source: Path | str,
    archive: Path,
    *,
    packages: Sequence[str] = (),
    bilm: BiLmPaths = (),
) -> Path:
    """Write a run as an archive that AllenNLP 2.10 loads, with the same predictions.

    Args:
        source: a run, as for `load`.
        archive: the path of the archive; an existing file is replaced.
        packages: plugins to import in addition to those of the run.
        bilm: where the biLMs of the run are, if they were moved.

    Raises:
        RunError: it cannot be loaded, or is not the run of a task.
        ConfigError: with everything that AllenNLP cannot do.
    """
    run = load(source, device="cpu", packages=packages, bilm=bilm)
    model = run.model
    if not isinstance(model, Head) or run.run is None:
        raise RunError(f"{source}: AllenNLP's archives are of runs of a task")
    ours = filled(read_experiment(run.run, packages))  # keys that are newer than the run too
    context, embedded = Context(ours), Embedded()
    config = _config(context, model, embedded)
    if model.temperature is not None:
        Place(context).at("calibration").problem("AllenNLP has no calibrated probabilities")
    if context.missing or context.problems:
        problems = [*context.missing, *context.problems]
        raise ConfigError(f"{source}, to be written for AllenNLP", problems)
    if labels := run.vocabularies.labels().items:
        embedded.namespaces["labels"] = [*labels]
    weights = _weights(ours["model"], config["model"], model, embedded)
    files = {
        "config.json": f"{json.dumps(config, indent=2)}\n".encode(),
        "weights.th": _pickled(weights),
        **_vocabulary(embedded.namespaces),
    }
    with compressed_tar(archive) as add:
        for name, content in files.items():
            add(name, content)
    return archive


def _config(context: Context, model: Head[Any], embedded: Embedded) -> dict[str, Any]:
    top, ours = Place(context), context.raw
    theirs = exported_model(top.at("model"), ours["model"], model, embedded)
    config: dict[str, Any] = {}
    for key in ("dataset_reader", "validation_dataset_reader"):
        if ours.get(key) is not None:
            config[key] = exported_reader(top.at(key), ours[key], embedded.indexers, ours["model"])
    # For configs that are read again; AllenNLP does not need it, and the folder is no one's matter.
    config["train_data_path"] = Path(str(ours["train_data_path"])).name
    batch_size = ours["data_loader"]["batch_size"]
    if ours["model"]["type"] == "coref":
        # Of several documents the longest determines how many spans of each are kept.
        batch_size = 1
    return {**config, "model": theirs, "data_loader": {"batch_size": batch_size, "shuffle": False}}


def _weights(
    ours: Mapping[str, Any], theirs: Mapping[str, Any], model: Head[Any], embedded: Embedded
) -> dict[str, Tensor]:
    has_input_elmo = theirs.get("use_input_elmo") is True
    pairs = names(ours, has_input_elmo=has_input_elmo)
    own = {**dict(model.named_parameters()), **embedded.tables}
    weights = exported_weights(pairs, {name: each.detach() for name, each in own.items()})
    if has_input_elmo:
        weights[INPUT_WEIGHT] = weights[INPUT_WEIGHT][:, input_columns(model).argsort()]
    crf = getattr(model, "crf", None)
    if isinstance(crf, ConditionalRandomField):
        weights["crf._constraint_mask"] = _constraint_mask(crf)
    return weights | elmo_weights(theirs, pairs)


def _constraint_mask(crf: ConditionalRandomField) -> Tensor:
    """Return 1 where a tag may follow another; the last two are the start and the end."""
    number = len(crf.transitions)
    mask = torch.zeros(number + 2, number + 2)
    mask[:number, :number] = (crf.inner_constraint == 0).float()
    mask[number, :number] = (crf.start_constraint == 0).float()
    mask[:number, number + 1] = (crf.end_constraint == 0).float()
    return mask if (mask[:number, :number] == 0).any() else torch.ones_like(mask)


def _pickled(weights: Mapping[str, Tensor]) -> bytes:
    file = io.BytesIO()
    torch.save(dict(weights), file)
    return file.getvalue()


def _vocabulary(namespaces: Mapping[str, Sequence[str]]) -> dict[str, bytes]:
    items = {"non_padded_namespaces": _UNPADDED, **namespaces}
    return {
        f"vocabulary/{name}.txt": "".join(
            item.replace("\n", "@@NEWLINE@@") + "\n" for item in listed
        ).encode()
        for name, listed in items.items()
    }
