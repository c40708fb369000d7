import json
from pathlib import Path

import pytest
import torch

from elmo_framework.bilm.files.load import bilm_files
from elmo_framework.commands.main import main
from elmo_framework.layers.bilm_source import open_layers
from tests.numpy_bilm import NumpyBiLm


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ELMO_CACHE_ROOT", str(tmp_path / "cache"))
    return tmp_path / "cache" / "layers"


@pytest.fixture
def keys(tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The stores of two biLMs."""
    for seed in (0, 1):
        files = bilm_files(NumpyBiLm.random(seed=seed).save(tmp_path / f"bilm{seed}"))
        open_layers(files, cache="disk").precompute(
            lambda: [["a", "b"], ["c"]], torch.device("cpu")
        )
    capsys.readouterr()
    return sorted(path.name for path in cache.glob("[!.]*"))


def test_stores_are_listed_with_the_bilm_that_they_come_from(keys, tmp_path, capsys) -> None:
    assert main(["cache", "--format", "json"]) == 0
    listed = {report["key"]: report for report in json.loads(capsys.readouterr().out)}
    assert sorted(listed) == keys
    sources = {report["source"] for report in listed.values()}
    assert sources == {str(tmp_path / f"bilm{seed}/weights.hdf5") for seed in (0, 1)}
    assert {report["num_sentences"] for report in listed.values()} == {2}
    assert main(["cache"]) == 0
    shown = capsys.readouterr().out
    assert all(key in shown for key in keys)


def test_clear_removes_one_layer_cache_or_all(keys, cache: Path, capsys) -> None:
    assert main(["cache", "clear", keys[0]]) == 0
    assert capsys.readouterr().out.startswith(f"{keys[0]}: removed, ")
    assert [path.name for path in cache.glob("[!.]*")] == keys[1:]
    assert main(["cache", "clear"]) == 0
    assert not list(cache.glob("[!.]*"))


def test_empty_cache_is_reported(cache: Path, capsys) -> None:
    assert main(["cache"]) == 0
    assert capsys.readouterr().out == f"{cache}: no cached layers\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["list", "key"], "error: unexpected KEY 'key'; only `elmo cache clear` takes one\n"),
        (["clear", "key"], "error: unknown key 'key' in {cache}; choose from (none).\n"),
    ],
)
def test_invalid_arguments_are_refused(cache: Path, capsys, arguments, message) -> None:
    assert main(["cache", *arguments]) == 2
    assert capsys.readouterr().err == message.format(cache=cache.parent)


@pytest.mark.parametrize(
    "about", [b"\xff", b"[]", b"3", b'{"digest": 3, "source": [], "dtype": null}']
)
def test_a_damaged_note_does_not_hide_the_others(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    about: bytes,
) -> None:
    monkeypatch.setenv("ELMO_CACHE_ROOT", str(tmp_path))
    (tmp_path / "layers" / "0123").mkdir(parents=True)
    (tmp_path / "layers" / "0123" / "about.json").write_bytes(about)
    assert main(["cache"]) == 0
    assert "0123" in capsys.readouterr().out
    assert main(["cache", "clear"]) == 0
    assert not (tmp_path / "layers" / "0123").exists()


def test_archives_and_downloads_are_listed_and_cleared(tmp_path: Path, capsys) -> None:
    for key in ("archives/0123", "hub/models--me--ner"):
        folder = tmp_path / "cache" / key
        folder.mkdir(parents=True)
        (folder / "weights").write_bytes(bytes(2048))
    (tmp_path / "cache" / "archives" / "0123.lock").touch()
    assert main(["cache", "--format", "json"]) == 0
    listed = {each["key"]: each["num_bytes"] for each in json.loads(capsys.readouterr().out)}
    assert listed == {"archives/0123": 2048, "hub/models--me--ner": 2048}
    assert main(["cache"]) == 0
    assert "hub/models--me--ner" in capsys.readouterr().out
    assert main(["cache", "clear", "archives/0123"]) == 0
    assert capsys.readouterr().out == "archives/0123: removed, 2.0 kB\n"
    assert main(["cache", "clear", "hub/models--me--ner", "archives/../hub"]) == 2
    message = "unknown key 'archives/../hub' in {}; choose from hub/models--me--ner."
    assert message.format(tmp_path / "cache") in capsys.readouterr().err
    assert (tmp_path / "cache/hub/models--me--ner").exists()
    assert main(["cache", "clear"]) == 0
    assert not [path for path in (tmp_path / "cache").glob("*/*") if path.is_dir()]


def test_downloads_are_listed_and_cleared_with_the_files_beside_them(tmp_path, capsys) -> None:
    downloads = tmp_path / "cache" / "downloads"
    downloads.mkdir(parents=True)
    whole, part, refused = (f"{digit * 12}-notes.txt" for digit in "abc")
    (downloads / whole).write_bytes(bytes(2048))
    (downloads / part).with_suffix(".txt.partial").write_bytes(bytes(1024))
    (downloads / f".{part}.writing").write_bytes(bytes(512))
    for name in (f"{whole}.sha256", f"{whole}.lock", f"{part}.lock", f"{refused}.lock", "mine.txt"):
        (downloads / name).touch()
    assert main(["cache", "--format", "json"]) == 0
    listed = {each["key"]: each["num_bytes"] for each in json.loads(capsys.readouterr().out)}
    assert listed == {f"downloads/{whole}": 2048, f"downloads/{part}": 1536}
    assert main(["cache", "clear", f"downloads/{whole}"]) == 0
    assert capsys.readouterr().out == f"downloads/{whole}: removed, 2.0 kB\n"
    assert not (downloads / f"{whole}.sha256").exists()
    assert main(["cache", "clear"]) == 0
    left = {path.name for path in downloads.iterdir()}
    assert left == {*(f"{name}.lock" for name in (whole, part, refused)), "mine.txt"}


def test_a_download_alone_is_listed(tmp_path, capsys) -> None:
    path = tmp_path / "cache" / "downloads" / "0123456789ab-options.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(bytes(100))
    assert main(["cache"]) == 0
    assert f"downloads/{path.name}" in capsys.readouterr().out
