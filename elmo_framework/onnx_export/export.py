"""Write task models and biLMs as ONNX, with the file that runs them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.files.load import read_bilm
from elmo_framework.bilm.files.published import resolve_bilm
from elmo_framework.errors import DataError, RunError
from elmo_framework.experiment.load_run import load
from elmo_framework.experiment.references import BiLmPaths
from elmo_framework.experiment.run_directory import RunDirectory
from elmo_framework.io.archives import local_folder
from elmo_framework.io.files import write_bytes, write_text
from elmo_framework.io.outputs import ONNX_FILES
from elmo_framework.model.head import Head
from elmo_framework.onnx_export.graph import Graph
from elmo_framework.onnx_export.heads import add_head
from elmo_framework.onnx_export.words import Words
from elmo_framework.version import VERSION

FORMAT = 1
"""The format number of `model.json`; that of the loader too, which can import nothing from here."""


def export_onnx(
    source: Path | str,
    directory: Path,
    *,
    is_int8: bool = False,
    words: Collection[str] | None = None,
    packages: Sequence[str] = (),
    bilm: BiLmPaths = (),
) -> list[Path]:
    """Write a run or a biLM as ONNX.

    Args:
        source: a run of a task, as for `load`; a biLM, as for `load_bilm`, or the run that
            trained one.
        directory: of the files; created if it does not exist.
        is_int8: as of `export_head`.
        words: as of `export_head`.
        packages: plugins to import in addition to those of the run.
        bilm: where the biLMs of the run are, if they were moved.

    Raises:
        RunError: it cannot be loaded; `words` or `bilm` with a biLM; or as of `export_head`.
        DataError: the biLM is missing.
    """
    try:
        files = resolve_bilm(source)
    except DataError:
        if not RunDirectory(local_folder(source)).config.is_file():
            raise
    else:
        if words is not None:
            raise RunError(f"--vocabulary is for a run with word vectors; {source} is a biLM")
        if bilm:
            raise RunError(f"--bilm is for a run of a task; {source} is a biLM")
        return export_layers(read_bilm(files), directory, is_int8=is_int8)
    run = load(source, device="cpu", packages=packages, bilm=bilm)
    return export_head(run.head(), directory, is_int8=is_int8, words=words)


@torch.no_grad()
def export_head(
    head: Head[Any],
    directory: Path,
    *,
    is_int8: bool = False,
    words: Collection[str] | None = None,
) -> list[Path]:
    """Write a task model as ONNX: characters in, labels out.

    The logits of a calibrated classifier are divided by its temperature. Products are those of
    float32, whatever the `precision` of a biLM. Layers are rounded as those of the run's layer
    cache are.

    Args:
        head: on the CPU.
        directory: of the files; created if it does not exist.
        is_int8: whether large weights are stored as int8 with a scale for each row.
        words: those whose word vectors are kept; None for all. Other words share the vector of
            unknown words.

    Returns:
        The files.

    Raises:
        RunError: it predicts no tags or labels, a part of the model has no ONNX form, or the extra
            `onnx` is not installed.
    """
    graph = Graph(is_int8=is_int8)
    inputs = Words(graph, None if words is None else frozenset(words))
    kind = add_head(head, inputs)
    labels = [] if head.labels is None else [*head.labels.items]
    is_calibrated = head.temperature is not None and kind != "tags"
    about = {"kind": kind, "labels": labels, "calibrated": is_calibrated}
    return _write(directory, graph, {**about, "tables": inputs.tables})


@torch.no_grad()
def export_layers(bilm: BiLm, directory: Path, *, is_int8: bool = False) -> list[Path]:
    """Write a biLM as ONNX: characters in, "layers batch tokens dim" out.

    The arguments, the result and the errors are those of `export_head`.
    """
    graph = Graph(is_int8=is_int8)
    inputs = Words(graph)
    layers = inputs.layers(bilm)
    parts = [
        graph.add("Unsqueeze", layers.at_tokens(layer, inputs.mask), graph.integers(0))
        for layer in layers.layers
    ]
    dims: list[str | int] = [bilm.num_layers, "batch", "tokens", bilm.output_dim]
    graph.output(graph.add("Concat", *parts, axis=0), "layers", dims, np.float32)
    return _write(directory, graph, {"kind": "layers", "labels": [], "tables": inputs.tables})


def _write(directory: Path, graph: Graph, about: Mapping[str, Any]) -> list[Path]:
    directory.mkdir(parents=True, exist_ok=True)
    model, description, loader = (directory / name for name in ONNX_FILES)
    write_bytes(model, graph.model())
    written = {"format": FORMAT, "elmo_framework": VERSION, **about}
    write_text(description, json.dumps(written) + "\n")
    write_bytes(loader, Path(__file__).with_name(loader.name).read_bytes())
    return [model, description, loader]
