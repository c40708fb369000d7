"""FASTA files, and vectors of residues and proteins."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pytest
import torch

from elmo_framework import load_bilm
from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.files.load import save_bilm
from elmo_framework.config.parse import parse
from elmo_framework.errors import DataError
from tests.experiment.jobs import run_forked
from tests.numpy_bilm import NumpyBiLm
from tests.plugin_scope import without_plugins

ROOT = Path(__file__).parents[3]
FASTA = """>sp|P1|ONE_TEST the first
SEQWENCE
protein
>sp|P2|TWO_TEST

m
>P3
ACDEFGHIKLMNPQRSTVWYX*
"""
SEQUENCES = {"P1": "SEQWENCEPROTEIN", "P2": "M", "P3": "ACDEFGHIKLMNPQRSTVWYX*"}


@pytest.fixture(scope="module", autouse=True)
def _in_root() -> Iterator[None]:
    with without_plugins("plugins"), pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        patch.syspath_prepend(ROOT)
        yield


@pytest.fixture(scope="module")
def reference() -> NumpyBiLm:
    """SeqVec's options with fewer dimensions: 50 characters, 7 widths, 2 highways, 2 layers."""
    filters = [[width, 2] for width in range(1, 8)]
    return NumpyBiLm.random(
        max_characters_per_token=50, projection_dim=4, dim=8, filters=filters, n_highway=2
    )


@pytest.fixture(scope="module")
def folder(reference: NumpyBiLm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return reference.save(tmp_path_factory.mktemp("seqvec") / "bilm")


def embedder(folder: Path, **keys: Any) -> Any:
    from plugins.proteins import ProteinEmbedder

    return ProteinEmbedder(load_bilm(folder), **keys)


def proteins(**sequences: str) -> list[Any]:
    from plugins.proteins import Protein

    return [Protein(*item) for item in sequences.items()]


def read(path: Path, text: str, **keys: Any) -> list[tuple[str, str]]:
    from plugins.proteins import read_fasta

    path.write_text(text)
    return [(protein.name, protein.residues) for protein in read_fasta(path, **keys)]


def combined(layers: np.ndarray, choice: str) -> np.ndarray:
    """The definition of SeqVec's script."""
    if choice == "sum":
        return layers.sum(axis=0)
    if choice == "all":
        return np.concatenate(layers, axis=1)
    return layers[["CNN", "LSTM1", "LSTM2"].index(choice)]


@pytest.mark.parametrize("choice", ["sum", "all", "CNN", "LSTM1", "LSTM2"])
@pytest.mark.parametrize("max_residues", [3, 5, 17, 2048])
def test_vectors_equal_the_layers_of_each_sequence(
    folder: Path, reference: NumpyBiLm, choice: str, max_residues: int
) -> None:
    embed = embedder(folder, layers=choice, max_residues=max_residues)
    given = proteins(**SEQUENCES)
    residues, means = embed.residue_vectors(given), embed.protein_vectors(given)
    pairs = zip(given, residues, means, strict=True)
    for protein, (one, vectors), (other, mean) in pairs:
        assert protein is one is other
        expected = combined(reference.layers(list(protein.residues))[:, 1:-1], choice)
        assert vectors.dtype == mean.dtype == np.float32
        np.testing.assert_allclose(vectors, expected, rtol=1e-6, atol=1e-5)
        np.testing.assert_allclose(mean, expected.mean(axis=0), rtol=1e-6, atol=1e-5)
        assert embed.dim == len(mean) == (24 if choice == "all" else 8)


def test_long_protein_is_computed_in_small_parts(folder: Path) -> None:
    sequence = "".join(np.random.default_rng(0).choice(list("ACDEFGHIKLMNPQRSTVWY"), 1000))
    parts = list(embedder(folder, max_residues=64).parts(proteins(P=sequence)))
    assert max(part.vectors.shape[0] for part in parts) <= 64
    assert [part.is_last for part in parts] == [False] * (len(parts) - 1) + [True]
    ((_, whole),) = embedder(folder).residue_vectors(proteins(P=sequence))
    ((_, joined),) = embedder(folder, max_residues=64).residue_vectors(proteins(P=sequence))
    np.testing.assert_allclose(joined, whole, atol=1e-5)


def test_long_proteins_of_a_bilm_that_reads_both_sides_are_whole(tmp_path: Path) -> None:
    context_layers = {
        "type": "bidirectional_transformer",
        "num_layers": 2,
        "num_heads": 2,
        "head_dim": 4,
        "feedforward_dim": 16,
        "window_size": 12,
    }
    raw = {
        "token_encoder": {"type": "char_cnn", "filters": [[1, 8]], "projection_dim": 8},
        "context_layers": context_layers,
    }
    torch.manual_seed(1)
    save_bilm(parse(BiLm, raw, source="bilm").build(), tmp_path)
    given = proteins(A="MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQ", B="MKTAYI", C="QLEERLGLIEVQAPILSRVGDGT")
    expected = dict(embedder(tmp_path).residue_vectors(given))
    for max_residues in (5, 20):
        embed = embedder(tmp_path, max_residues=max_residues)
        residues, means = embed.residue_vectors(given), embed.protein_vectors(given)
        for protein, (one, vectors), (other, mean) in zip(given, residues, means, strict=True):
            assert protein is one is other
            np.testing.assert_allclose(vectors, expected[protein], atol=1e-5)
            np.testing.assert_allclose(mean, expected[protein].mean(axis=0), atol=1e-5)


def test_sequences_are_read_one_pool_at_a_time(folder: Path) -> None:
    taken = []

    def stream() -> Iterator[Any]:
        for number in range(1000):
            taken.append(number)
            yield from proteins(**{f"P{number}": "ACDEF"})

    next(embedder(folder, max_residues=10).residue_vectors(stream()))
    assert len(taken) < 20


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"layers": "lstm1"}, "layers is 'lstm1'; choose from sum, all, CNN, LSTM1, LSTM2"),
        ({"max_residues": 2}, "max_residues is 2; it must be at least 3"),
    ],
)
def test_invalid_options_are_errors(folder: Path, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        embedder(folder, **keys)


def test_layer_that_the_bilm_does_not_have_is_an_error(tmp_path: Path) -> None:
    folder = NumpyBiLm.random(n_layers=1, max_characters_per_token=50).save(tmp_path / "bilm")
    with pytest.raises(ValueError, match="layers is 'LSTM2', but the biLM has 2 layers"):
        embedder(folder, layers="LSTM2")


def test_fasta_names_are_words_or_fields(tmp_path: Path) -> None:
    path = tmp_path / "a.fasta"
    names = ["sp|P1|ONE_TEST", "sp|P2|TWO_TEST", "P3"]
    assert read(path, FASTA) == list(zip(names, SEQUENCES.values(), strict=True))
    by_field = FASTA.replace(">P3", ">tr|P3|THREE")
    assert read(path, by_field, id_field=1) == list(SEQUENCES.items())


@pytest.mark.parametrize(
    ("text", "keys", "message"),
    [
        ("ACD\n", {}, ":1: expected a header such as '>P12345'"),
        ("; a comment\n\n", {}, ": this file has no sequences"),
        (">A\nAC\n>B\n>C\nA\n", {}, ":3: the sequence 'B' has no residues"),
        (">A\nAC\n>B\n", {}, ":3: the sequence 'B' has no residues"),
        (">A\nAC-D\n", {}, ":2: '-' is not an amino acid; remove gaps and numbers"),
        (">A\nAC\n>B\nA\n>A x\nC\n", {}, ":5: the name 'A' is that of line 1 too"),
        ("> \nAC\n", {}, ":1: the header has no name"),
        (">A|B\nAC\n", {"id_field": 2}, ":1: the header has no field 2: 'A|B'"),
        (">A|B\nAC\n", {"id_field": -1}, ":1: the header has no field -1: 'A|B'"),
        (">A|B\nAC\n", {"id_field": -9}, ":1: the header has no field -9: 'A|B'"),
    ],
)
def test_bad_fasta_is_an_error_with_its_line(
    tmp_path: Path, text: str, keys: dict[str, Any], message: str
) -> None:
    path = tmp_path / "bad.fasta"
    with pytest.raises(DataError) as caught:
        read(path, text, **keys)
    assert str(caught.value) == f"{path}{message}"


def run(*arguments: object) -> int:
    from plugins.proteins import main

    return main([str(each) for each in arguments])


@pytest.mark.parametrize("max_residues", [6, 2048])
def test_command_writes_a_dataset_for_each_protein(
    folder: Path, tmp_path: Path, max_residues: int
) -> None:
    fasta, output = tmp_path / "p.fasta", tmp_path / "out.h5"
    fasta.write_text(FASTA.replace(">P3", ">tr|P3|THREE"))
    flags = ["--output-file", output, "--id-field", 1, "--max-residues", max_residues]
    assert run(folder, fasta, *flags, "--device", "cpu") == 0
    pairs = embedder(folder).residue_vectors(proteins(**SEQUENCES))
    expected = {protein.name: vectors for protein, vectors in pairs}
    with h5py.File(output) as file:
        assert set(file) == set(SEQUENCES)
        for name, vectors in expected.items():
            np.testing.assert_allclose(file[name][:], vectors, atol=1e-5)
    assert run(folder, fasta, *flags, "--protein", "--force") == 0
    with h5py.File(output) as file:
        for name, vectors in expected.items():
            np.testing.assert_allclose(file[name][:], vectors.mean(axis=0), atol=1e-5)


def test_command_keeps_an_existing_file(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fasta, output = tmp_path / "p.fasta", tmp_path / "out.h5"
    fasta.write_text(FASTA)
    output.write_text("mine")
    assert run(folder, fasta, "--output-file", output) == 2
    assert "output already exists; pass --force to overwrite" in capsys.readouterr().err
    assert output.read_text() == "mine"
    assert {path.name for path in tmp_path.iterdir()} == {"p.fasta", "out.h5"}


def test_domains_of_a_protein_have_datasets_beside_it(folder: Path, tmp_path: Path) -> None:
    fasta, output = tmp_path / "p.fasta", tmp_path / "out.h5"
    fasta.write_text(">Q5VST9\nACDE\n>Q5VST9/1-3\nACD\n>A/\nAC\n")
    assert run(folder, fasta, "--output-file", output, "--device", "cpu") == 0
    with h5py.File(output) as file:
        lengths = {name: len(dataset) for name, dataset in file.items()}
    assert lengths == {"Q5VST9": 4, "Q5VST9_1-3": 3, "A_": 2}


@pytest.fixture
def no_bilm_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors of the arguments must come before the biLM, which takes long to load."""
    command = import_module("plugins.proteins.main")  # the package has the function `main`
    monkeypatch.setattr(command, "load_bilm", lambda *_, **__: pytest.fail("it is loaded"))


@pytest.mark.usefixtures("no_bilm_is_loaded")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (">A/B\nAC\n>A_B\nAC\n", "'A/B' and 'A_B' would be one dataset 'A_B'; rename one"),
        (">.\nAC\n", "'.' cannot be the name of a dataset"),
        (">A\0B\nAC\n", "'A\\x00B' cannot be the name of a dataset"),
    ],
)
def test_names_that_are_no_datasets_are_found_first(
    folder: Path, tmp_path: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fasta, output = tmp_path / "p.fasta", tmp_path / "out.h5"
    fasta.write_text(text)
    assert run(folder, fasta, "--output-file", output) == 2
    assert capsys.readouterr().err == f"error: {fasta}: {message}\n"


@pytest.mark.usefixtures("no_bilm_is_loaded")
def test_force_keeps_the_inputs(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fasta, link = tmp_path / "p.fasta", tmp_path / "link.h5"
    fasta.write_text(FASTA)
    link.hardlink_to(fasta)
    weights = (folder / "weights.hdf5").read_bytes()
    for output in (fasta, link, folder / "weights.hdf5", folder / "options.json"):
        assert run(folder, fasta, "--output-file", output, "--force") == 2
        message = f"error: {output}: --output-file is also an input; choose another file\n"
        assert capsys.readouterr().err == message
    assert fasta.read_text() == FASTA
    assert (folder / "weights.hdf5").read_bytes() == weights


@pytest.mark.usefixtures("no_bilm_is_loaded")
@pytest.mark.parametrize(
    ("output", "flags", "message"),
    [
        ("", (), "not a file; --output-file names the HDF5 file to write"),
        ("missing/out.h5", (), "missing: not a folder; create it, or choose another"),
        ("p.fasta/out.h5", (), "p.fasta: not a folder; create it, or choose another"),
        ("out.h5", ("--device", "foo"), "error: --device: cannot use 'foo' (Expected one of cpu"),
        ("out.h5", ("--device", "meta"), "error: --device: cannot use 'meta' ("),
    ],
)
def test_unusable_output_or_device_is_found_first(
    folder: Path,
    tmp_path: Path,
    output: str,
    flags: tuple[str, ...],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fasta = tmp_path / "p.fasta"
    fasta.write_text(FASTA)
    assert run(folder, fasta, "--output-file", tmp_path / output, "--force", *flags) == 2
    assert message in capsys.readouterr().err


@pytest.mark.usefixtures("no_bilm_is_loaded")
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_missing_gpu_is_an_error(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.fasta").write_text(FASTA)
    flags = ["--output-file", tmp_path / "out.h5", "--device", "cuda"]
    assert run(folder, tmp_path / "p.fasta", *flags) == 2
    assert "error: --device: cannot use 'cuda' (" in capsys.readouterr().err


@pytest.mark.usefixtures("no_bilm_is_loaded")
def test_folder_that_may_not_be_written_is_found_first(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "p.fasta").write_text(FASTA)
    monkeypatch.setattr(os, "access", lambda *_: False)  # the tests may run as root
    assert run(folder, tmp_path / "p.fasta", "--output-file", tmp_path / "out.h5") == 2
    assert f"{tmp_path}: you may not write into this folder" in capsys.readouterr().err


@pytest.mark.parametrize(("flags", "num_bytes"), [((), "1,216"), (("--protein",), "96")])
def test_small_disk_is_found_first(
    folder: Path,
    tmp_path: Path,
    flags: tuple[str, ...],
    num_bytes: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "p.fasta").write_text(FASTA)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=95))
    assert run(folder, tmp_path / "p.fasta", "--output-file", tmp_path / "out.h5", *flags) == 2
    message = f"the vectors need {num_bytes} bytes, and the disk has 95; choose another"
    assert message in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="Windows has no limit of the size of files")
def test_full_disk_is_an_error_and_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    from resource import RLIMIT_FSIZE, setrlimit

    fasta, output, log = tmp_path / "p.fasta", tmp_path / "out.h5", tmp_path / "log"
    fasta.write_text("".join(f">P{number}\nACDEF\n" for number in range(200)))

    def work() -> int:
        sys.stderr = log.open("w")
        setrlimit(RLIMIT_FSIZE, (20_000, 20_000))
        code = run(folder, fasta, "--output-file", output, "--device", "cpu")
        sys.stderr.close()
        return code

    assert run_forked(work) == 2
    assert f"File too large: '{output}'" in log.read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"p.fasta", "log"}


@pytest.mark.usefixtures("no_bilm_is_loaded")
@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="pipes have no paths")
def test_pipe_is_refused(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reading, writing = os.pipe()
    os.write(writing, FASTA.encode())
    os.close(writing)
    fasta = f"/dev/fd/{reading}"
    assert run(folder, fasta, "--output-file", tmp_path / "out.h5") == 2
    os.close(reading)
    assert f"{fasta}: not a regular file; it is read twice, so save" in capsys.readouterr().err


def test_module_is_a_command() -> None:
    command = [sys.executable, "-m", "plugins.proteins", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert "--max-residues" in done.stdout


def test_project_file_names_the_command() -> None:
    project = tomllib.loads((ROOT / "plugins/proteins/pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"elmo-proteins": "proteins.main:main"}
