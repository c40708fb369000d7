"""Rewrite an archive of AllenNLP 2.10 as an earlier version wrote it.

Each step undoes one change of the config, the names of the weights or the files. It has the first
version with the change; all changes that are newer than a version are undone for it. The changes
are those that `docs/allennlp_archives.md` lists.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor

Config: TypeAlias = dict[str, Any]
Version: TypeAlias = tuple[int, int]

VERSIONS: tuple[Version, ...] = ((0, 8), (0, 9), (1, 0), (1, 5))
_WEIGHTS = "weights.th"


@dataclass
class Archive:
    """The parts of an archive.

    Attributes:
        config: as JSON types.
        weights: by their names.
        files: all other members, by their names.
        is_zipped: whether the weights are in PyTorch's format since 1.6.
    """

    config: Config
    weights: dict[str, Tensor]
    files: dict[str, bytes]
    is_zipped: bool = True


Step: TypeAlias = Callable[[Archive], None]


def rewrite(archive: Path, version: Version, target: Path) -> Path:
    """Write an archive as a version of AllenNLP would have.

    Args:
        archive: of AllenNLP 2.10.
        version: one of `VERSIONS`.
        target: the path of the new archive.
    """
    read = _read(archive)
    for since, step in _STEPS:
        if version < since:
            step(read)
    weights = io.BytesIO()
    torch.save(read.weights, weights, _use_new_zipfile_serialization=read.is_zipped)
    members = {
        "config.json": json.dumps(read.config).encode(),
        _WEIGHTS: weights.getvalue(),
        **read.files,
    }
    with tarfile.open(target, "w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return target


def _read(path: Path) -> Archive:
    files: dict[str, bytes] = {}
    with tarfile.open(path) as tar:
        for member in tar:
            if (source := tar.extractfile(member)) is not None:
                files[member.name] = source.read()
    weights = torch.load(io.BytesIO(files.pop(_WEIGHTS)), weights_only=True)
    return Archive(json.loads(files.pop("config.json")), weights, files)


def _rename(archive: Archive, pattern: str, replacement: str) -> None:
    archive.weights = {
        re.sub(pattern, replacement, name): tensor for name, tensor in archive.weights.items()
    }


def _blocks(value: Any) -> Iterator[Config]:
    if isinstance(value, dict):
        yield value
    inner = value.values() if isinstance(value, dict) else value
    for each in inner if isinstance(value, dict | list) else ():
        yield from _blocks(each)


def _without_metadata(archive: Archive) -> None:
    archive.files.pop("meta.json", None)


def _readers_are_lazy(archive: Archive) -> None:
    archive.config["dataset_reader"]["lazy"] = False


def _trainer_writes_the_board(archive: Archive) -> None:
    trainer = archive.config["trainer"]
    trainer |= {"tensorboard_writer": {"summary_interval": 100}, "batch_callbacks": None}
    trainer["checkpointer"] = {"num_serialized_models_to_keep": 2}


def _loaders_are_those_of_pytorch(archive: Archive) -> None:
    batch_size = archive.config["data_loader"]["batch_size"]
    sampler = {"type": "bucket", "batch_size": batch_size, "padding_noise": 0.1}
    archive.config["data_loader"] = {"type": "default", "batch_sampler": sampler}


def _precision_is_that_of_apex(archive: Archive) -> None:
    archive.config["trainer"]["opt_level"] = None


def _weights_are_not_zipped(archive: Archive) -> None:
    archive.is_zipped = False


def _batches_are_of_iterators(archive: Archive) -> None:
    config = archive.config
    config["iterator"] = {
        "type": "bucket",
        "batch_size": 4,
        "sorting_keys": [["tokens", "num_tokens"]],
        "padding_noise": 0.1,
    }
    del config["data_loader"]


def _trainer_has_all_keys(archive: Archive) -> None:
    trainer = archive.config["trainer"]
    archive.config["trainer"] = {
        **{key: trainer[key] for key in ("optimizer", "num_epochs")},
        "cuda_device": -1,
        "num_serialized_models_to_keep": 2,
        "should_log_learning_rate": True,
        "should_log_parameter_statistics": False,
        "shuffle": True,
        "summary_interval": 50,
    }


def _rules_are_lists(archive: Archive) -> None:
    zero, decay = {"type": "constant", "val": 0.0}, {"type": "l2", "alpha": 0.01}
    archive.config["model"] |= {
        "initializer": [["encoder.*bias", zero]],
        "regularizer": [["encoder.*weight", decay]],
    }


def _tokenizers_split_words(archive: Archive) -> None:
    reader = archive.config["dataset_reader"]
    if "tokenizer" in reader:
        value = reader["tokenizer"]
        values = {"type": value} if isinstance(value, str) else dict(value)
        splitter = {"type": values.pop("type")}
        reader["tokenizer"] = {"type": "word", "word_splitter": splitter, **values}


def _sums_are_boe(archive: Archive) -> None:
    for block in _blocks(archive.config["model"]):
        if block.get("type") == "bag_of_embeddings":
            block["type"] = "boe"


def _attentions_are_similarities(archive: Archive) -> None:
    model = archive.config["model"]
    if "matrix_attention" in model:
        model["similarity_function"] = model.pop("matrix_attention")
        _rename(
            archive, r"^_matrix_attention\.(\w+)$", r"_matrix_attention._similarity_function.\1"
        )


def _layers_have_no_cells(archive: Archive) -> None:
    _rename(archive, r"(layer_\d+)\.cell\.", r"\1.")


def _mentions_are_pruned(archive: Archive) -> None:
    _rename(archive, r"^_mention_feedforward\.", "_mention_pruner._scorer.0.")
    _rename(archive, r"^_mention_scorer\.", "_mention_pruner._scorer.1.")


def _vocabulary_has_no_lock(archive: Archive) -> None:
    archive.files.pop("vocabulary/.lock", None)


def _indexers_are_mapped(archive: Archive) -> None:
    embedder = archive.config["model"]["text_field_embedder"]
    names = {name: [name] for name in embedder["token_embedders"]}
    embedder |= {"type": "basic", "embedder_to_indexer_map": names, "allow_unmatched_keys": True}


def _files_may_be_added(archive: Archive) -> None:
    archive.files["files_to_archive.json"] = b"{}"


def _embedders_have_no_key(archive: Archive) -> None:
    embedder = archive.config["model"]["text_field_embedder"]
    embedder |= embedder.pop("token_embedders")


_STEPS: tuple[tuple[Version, Step], ...] = (
    ((2, 0), _without_metadata),
    ((2, 0), _readers_are_lazy),
    ((2, 0), _trainer_writes_the_board),
    ((2, 0), _loaders_are_those_of_pytorch),
    ((1, 1), _precision_is_that_of_apex),
    ((1, 1), _weights_are_not_zipped),
    ((1, 0), _batches_are_of_iterators),
    ((1, 0), _trainer_has_all_keys),
    ((1, 0), _rules_are_lists),
    ((1, 0), _tokenizers_split_words),
    ((1, 0), _sums_are_boe),
    ((1, 0), _attentions_are_similarities),
    ((1, 0), _layers_have_no_cells),
    ((1, 0), _mentions_are_pruned),
    ((1, 0), _vocabulary_has_no_lock),
    ((1, 0), _indexers_are_mapped),
    ((1, 0), _files_may_be_added),
    ((0, 9), _embedders_have_no_key),
)
