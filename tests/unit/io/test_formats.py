"""Format numbers: files without one are read, those of a newer format refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from elmo_framework.analysis.scored_run import scored_runs
from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.files.load import bilm_files, read_bilm, save_bilm
from elmo_framework.config.parse import parse
from elmo_framework.corpus.manifest import Manifest
from elmo_framework.errors import DataError, ElmoFrameworkError
from elmo_framework.experiment.run_directory import RunDirectory
from elmo_framework.io.formats import check_format
from elmo_framework.study.record import Record, read_record, write_record
from elmo_framework.version import VERSION

BILM = {
    "token_encoder": {"type": "bytes", "projection_dim": 4, "num_highway": 0},
    "context_layers": {"type": "elmo_lstm", "cell_size": 6, "projection_dim": 4},
}


@dataclass
class Kind:
    """How a kind of file is written and read.

    Attributes:
        name: in the message.
        file: that has the number.
        write: makes the files in a folder.
        read: reads them.
        number: as it is in the file.
    """

    name: str
    file: str
    write: Callable[[Path], object]
    read: Callable[[Path], object]
    number: Callable[[int], object] = int


def write_run(folder: Path) -> None:
    (folder / "filled_config.json").write_text("{}")
    (folder / "metadata.json").write_text('{"format": 1, "device": "cpu"}')


def write_a_record(folder: Path) -> None:
    scores: dict[str, Any] = {}
    for key in ("validation", "training", "digests", "versions"):
        scores[key] = {}
    config = {
        "model": {"type": "crf_tagger"},
        "trainer": {"validation_metric": "+f1"},
        "random_seed": 1,
    }
    record = Record(
        config="ner",
        variant="mini",
        seed=1,
        fraction=1,
        metric="+f1",
        **{"minutes": 1.0, "experiment": config, **scores},
    )
    write_record(folder / "record.json", record)


def write_bilm(folder: Path) -> None:
    save_bilm(parse(BiLm, BILM, source="test").build(), folder)


KINDS = {
    "run": Kind("a run", "metadata.json", write_run, RunDirectory.begun),
    "corpus": Kind(
        "a corpus",
        "corpus.json",
        lambda folder: (folder / "corpus.json").write_text(Manifest({}, {}, ()).text()),
        Manifest.read,
        "elmo_framework corpus {}".format,
    ),
    "record": Kind(
        "a record",
        "record.json",
        write_a_record,
        lambda folder: read_record(folder / "record.json"),
    ),
    "bilm": Kind("a biLM", "bilm.json", write_bilm, lambda folder: read_bilm(bilm_files(folder))),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Kind:
    kind = KINDS[request.param]
    kind.write(tmp_path)
    return kind


def change(path: Path, **values: object) -> None:
    content = json.loads(path.read_text()) | values
    path.write_text(json.dumps({key: each for key, each in content.items() if each is not None}))


def test_this_format_and_older_ones_are_read(kind: Kind, tmp_path: Path) -> None:
    assert json.loads((tmp_path / kind.file).read_text())["format"] == kind.number(1)
    kind.read(tmp_path)
    if kind.name != "a corpus":  # its number is as old as the corpus
        change(tmp_path / kind.file, format=None)
    kind.read(tmp_path)


def test_a_newer_format_is_refused_by_name(kind: Kind, tmp_path: Path) -> None:
    change(tmp_path / kind.file, format=kind.number(2))
    with pytest.raises(ElmoFrameworkError) as caught:
        kind.read(tmp_path)
    message = f"{kind.name} of format 2; version {VERSION} reads formats up to 1: pip install"
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path))


def test_the_message_has_the_version_that_wrote_the_file(tmp_path: Path) -> None:
    write_run(tmp_path)
    change(tmp_path / "metadata.json", format=3, elmo_framework="7.1")
    run = RunDirectory(tmp_path)
    with pytest.raises(ElmoFrameworkError, match=r"a run of format 3, written by .* 7\.1; "):
        run.prepare(force=False, recover=True)


def test_compare_refuses_a_newer_record(tmp_path: Path) -> None:
    write_a_record(tmp_path)
    change(tmp_path / "record.json", format=2, versions={"elmo_framework": "7.1"})
    with pytest.raises(ElmoFrameworkError, match=r"a record of format 2, written by .* 7\.1; "):
        scored_runs([tmp_path / "record.json"])


@pytest.mark.parametrize("found", ["x", True, 1.5, [2], None])
def test_a_format_that_is_no_number_is_refused(found: object, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'format' is .*; expected a number"):
        check_format({"format": found}, name="a run", supported=1, path=tmp_path)
