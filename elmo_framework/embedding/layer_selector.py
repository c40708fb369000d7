"""Select the layers of an encoder that are written, or mix them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from operator import itemgetter
from pathlib import Path
from typing import final

import torch
from torch import Tensor

from elmo_framework.bilm.layer_mix import LayerMix
from elmo_framework.embedders.layer_embedder import LayerEmbedder
from elmo_framework.errors import RunError, allowed
from elmo_framework.experiment.assembly import Assembly
from elmo_framework.experiment.load_run import load
from elmo_framework.experiment.references import recorded_digests
from elmo_framework.experiment.run_directory import RunDirectory
from elmo_framework.layers.layer_source import LayerSource

_MIXED = re.compile(r"mixed\((.+)\)")


@final
@dataclass(frozen=True)
class LayerSelector:
    """Makes what is written of the layers of one sentence.

    Attributes:
        name: as the user wrote it, and anything else that distinguishes two selectors.
        of_layers: returns "*rows words dim" of "layers words dim", whose first and last words are
            the boundaries `<S>` and `</S>`, which the mix of a model needs.
        rows: the number of vectors of a word; None for one vector without a row axis.
        variant: of the source of the layers; see `LayerSource`.
        is_mix: whether `of_layers` needs each sentence by itself; others also take the layers of
            a batch, "layers rows words dim".
    """

    name: str
    of_layers: Callable[[Tensor], Tensor]
    rows: int | None = None
    variant: str = ""
    is_mix: bool = False


def layer_selector(
    text: str,
    *,
    source: LayerSource,
    bilm: Path | str,
    run_bilms: Sequence[Path | str] = (),
    packages: Sequence[str] = (),
) -> LayerSelector:
    """Return what `--layers` means.

    Args:
        text: `all`, `top`, `average`, the number of a layer, `mixed(RUN)` for the first mix of the
            task model in a run's folder, or `mixed(RUN:NAME)` for the one of that name.
        source: of the layers.
        bilm: the place of the source.
        run_bilms: where other biLMs of the run of a mix are, if they were moved.
        packages: plugins that the run of a mix needs besides its own.

    Raises:
        RunError: it means nothing, `--bilm` is given without a mix, or the run has no mix for this
            biLM.
    """
    num_layers, variant = source.num_layers, source.variant
    if target := mixed_target(text):
        path, name = target
        digest = "" if source.fingerprint is None else source.fingerprint.digest
        # The biLM whose layers are mixed need not be named again.
        recorded = recorded_digests(RunDirectory.existing(path))
        own = [bilm] if digest in recorded.values() else []
        run = load(path, device="cpu", packages=packages, bilm=[*run_bilms, *own])
        embedder = _mixing_embedder(run, path, name, digest)
        assert embedder.mix is not None
        return _mixed(text, embedder.mix, embedder.source.variant)
    if run_bilms:
        raise RunError(f"--bilm belongs to --layers mixed(RUN), not to --layers {text}")
    numbers = [str(number) for number in range(num_layers)]
    if text == "all":
        return LayerSelector("all", lambda layers: layers, num_layers, variant)
    if text == "average":
        return LayerSelector("average", lambda layers: layers.mean(dim=0), variant=variant)
    if text == "top" or text in numbers:
        index = num_layers - 1 if text == "top" else int(text)
        return LayerSelector(str(index), itemgetter(index), variant=variant)
    choices = ["all", "top", "average", *numbers, "mixed(RUN)", "mixed(RUN:NAME)"]
    raise RunError(f"--layers: unknown layers {text!r}; {allowed(text, choices)}")


def _mixed(text: str, mix: LayerMix, variant: str) -> LayerSelector:
    """Return the mix that a task model has learned, without its dropout and projection.

    A mix that normalizes layers does so over each sentence, its boundaries counted.
    """
    weights = b"".join(value.numpy().tobytes() for value in mix.state_dict().values())

    def of_layers(layers: Tensor) -> Tensor:
        mask = torch.ones(1, layers.shape[1], dtype=torch.bool)
        with torch.no_grad():
            mixed: Tensor = mix(layers[:, None], mask)
        return mixed[0]

    name = f"{text} with SHA-256 {sha256(weights).hexdigest()[:12]}"
    return LayerSelector(name, of_layers, variant=variant, is_mix=True)


def mixed_target(text: str) -> tuple[Path, str] | None:
    """Return the run and the embedder of `mixed(RUN)` or `mixed(RUN:NAME)`; None for other layers.

    The name is empty where none is given. A folder with a colon in its name is taken as it is.
    """
    if not (mixed := _MIXED.fullmatch(text)):
        return None
    path, colon, name = mixed[1].rpartition(":")
    return (Path(path), name) if colon and not Path(mixed[1]).is_dir() else (Path(mixed[1]), "")


def _mixing_embedder(run: Assembly, path: Path, name: str, digest: str) -> LayerEmbedder:
    target = f"{path}:{name}" if name else str(path)
    embedders = {
        key.rpartition(".")[2]: module
        for key, module in run.model.named_modules()
        if isinstance(module, LayerEmbedder)
    }
    if not embedders:
        raise RunError(f"--layers mixed({target}): the model of this run reads no encoder")
    if name and name not in embedders:
        message = f"no {name!r} in {path}; {allowed(name, embedders)}"
        raise RunError(f"--layers mixed({target}): {message}")
    embedder = embedders[name] if name else next(iter(embedders.values()))
    if embedder.reference is None:
        raise RunError(
            f"--layers mixed({target}): this run has trained the encoder with its task, so that "
            "its mix fits no other; train one with a frozen encoder"
        )
    if embedder.reference.digest != digest:
        raise RunError(
            f"--layers mixed({target}): this run has learned its mix on another encoder, "
            f"{embedder.reference.path} (SHA-256 {embedder.reference.digest[:12]}, "
            f"not {digest[:12]})"
        )
    if embedder.mix is None:
        raise RunError(
            f"--layers mixed({target}): this run reads the last layer alone, without a mix; pass "
            "--layers top"
        )
    return embedder
