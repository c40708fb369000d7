"""The biLM of a run or of a folder, written in bilm-tf's format for others to read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.hdf5 import has_bilm_tf_parts
from elmo_framework.bilm.load import FILE_NAMES, BiLmFiles, bilm_files, read_bilm, save_bilm
from elmo_framework.common.errors import DataError, RunError
from elmo_framework.experiment.loaded_run import load
from elmo_framework.experiment.run_directory import RunDirectory


def export_bilm(
    source: Path, directory: Path, *, force: bool = False, packages: Sequence[str] = ()
) -> BiLmFiles:
    """Write `options.json` and `weights.hdf5`; each file is replaced at once.

    Args:
        source: the folder of a biLM, of a run that pretrained one, or of a run that trained one
            together with its task model.
        directory: where the files go; it is made if it is not there.
        force: whether a biLM that is there may be replaced.
        packages: plugins besides those that the run was trained with.

    Returns:
        The files.

    Raises:
        DataError: there is no biLM.
        RunError: bilm-tf's format cannot hold it, a biLM is in the way, or the run cannot be
            loaded.
    """
    present = [name for name in FILE_NAMES if (directory / name).exists()]
    if present and not force:
        raise RunError(
            f"--output-dir {directory}: a biLM is there already ({', '.join(present)}); pass "
            "--force to replace it, or choose another folder"
        )
    bilm = _bilm(source, packages)
    _require_bilm_tf_parts(bilm, source)
    save_bilm(bilm, directory)
    return bilm_files(directory)


def _bilm(source: Path, packages: Sequence[str]) -> BiLm:
    try:
        files = bilm_files(source)
    except DataError:
        if not RunDirectory(source).config.is_file():
            raise
        return _trained_with_task(source, packages)
    return read_bilm(files)


def _trained_with_task(source: Path, packages: Sequence[str]) -> BiLm:
    """Return the biLM among the weights of a task model."""
    model = load(source, device="cpu", packages=packages).model
    held = {name: part for name, part in model.named_modules() if isinstance(part, BiLm)}
    if len(held) == 1:
        return next(iter(held.values()))
    if held:
        raise RunError(f"{source}: this run trained several biLMs: {', '.join(held)}; allowed: one")
    frozen = sorted({str(reference.path.parent) for reference in model.references().values()})
    hint = f"; it reads the frozen one in {', '.join(frozen)}, export that" if frozen else ""
    raise RunError(f"{source}: this run trained no biLM{hint}")


def _require_bilm_tf_parts(bilm: BiLm, source: Path) -> None:
    if not has_bilm_tf_parts(bilm):
        words, context = (bilm.description[part] for part in ("token_encoder", "context_layers"))
        raise RunError(
            f"{source}: this biLM has a token_encoder {words['type']!r} and context_layers "
            f"{context['type']!r}; bilm-tf's files hold 'char_cnn' with 'elmo_lstm' alone"
        )
