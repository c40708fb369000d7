"""The rule that no output replaces an input or a part of other work."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from elmo_framework.errors import RunError
from elmo_framework.io.outputs import (
    Input,
    Output,
    check_outputs,
    check_standard_output,
)
from tests.redirection import standard_output_to


def refused(output: Output, *inputs: Path) -> str:
    """Return the message that an output is refused with."""
    with pytest.raises(RunError) as caught:
        check_outputs([output], [Input(path, "FILE") for path in inputs])
    return str(caught.value)


def accept(output: Output, *inputs: Path) -> None:
    check_outputs([output], [Input(path, "FILE") for path in inputs])


def file(path: Path, *, force: bool = True) -> Output:
    return Output(path, "--output-file", force=force)


def folder(path: Path) -> Output:
    return Output(path, "--output-dir", is_folder=True)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("one\n")
    return path


def made(path: Path, *names: str) -> Path:
    for name in names:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text("{}")
    return path


@pytest.fixture
def run(tmp_path: Path) -> Path:
    files = ("filled_config.json", "weights.safetensors", "vocabulary/words.txt")
    return made(tmp_path / "run", *files, "bilm/options.json", "bilm/weights.hdf5")


def test_an_input_is_never_overwritten(text: Path) -> None:
    message = refused(file(text), text)
    assert message == f"--output-file {text} is also an input (FILE); choose another path"


def test_a_file_is_refused_where_a_folder_is_written(text: Path) -> None:
    assert refused(folder(text)) == (
        f"--output-dir {text} is a file, and a folder is written; choose another path"
    )
    for output in (file(text / "out"), folder(text / "inner" / "out")):
        assert f"cannot be written: {text} is a file and not a folder" in refused(output)
    accept(folder(text.parent / "out"))
    accept(folder(text.parent))


def test_another_spelling_of_an_input_is_recognized(
    text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(text.parent)
    (text.parent / "inner").mkdir()
    for spelling in ("text.txt", "./text.txt", "inner/../text.txt"):
        assert "is also an input" in refused(file(Path(spelling)), text)


def test_links_to_an_input_are_recognized(text: Path) -> None:
    symbolic, hard = text.with_name("symbolic"), text.with_name("hard")
    symbolic.symlink_to(text)
    os.link(text, hard)
    for link in (symbolic, hard):
        assert "is also an input" in refused(file(link), text)
        assert "is also an input" in refused(file(text), link)


def test_an_input_in_an_archive_is_the_archive(tmp_path: Path) -> None:
    archive = made(tmp_path, "vectors.zip") / "vectors.zip"
    inside = tmp_path / "(vectors.zip)#glove.txt"
    assert "is also an input" in refused(file(archive), inside)


def test_the_files_of_a_pattern_are_inputs(text: Path) -> None:
    assert "is also an input" in refused(file(text), text.parent / "t*.txt")
    accept(file(text.parent / "other.txt"), text.parent / "t*.txt")


def test_no_file_is_written_into_a_folder_of_data(text: Path, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    assert "is a file of the input" in refused(file(tmp_path / "new.txt"), tmp_path)
    os.link(text, outside)
    assert "is a file of the input" in refused(file(outside), tmp_path)
    accept(folder(tmp_path / "corpus"), tmp_path)


def test_a_folder_that_holds_an_input_is_not_replaced(text: Path, tmp_path: Path) -> None:
    message = refused(folder(tmp_path), text)
    assert message == f"--output-dir {tmp_path} contains the input {text} (FILE); " + (
        "choose another path"
    )
    link = tmp_path.with_name(f"{tmp_path.name}-link")
    link.symlink_to(tmp_path)
    assert "contains the input" in refused(folder(link), text)


def test_standard_input_from_the_output_is_recognized(text: Path) -> None:
    before = os.dup(0)
    try:
        with text.open() as opened:
            os.dup2(opened.fileno(), 0)
        assert "is also the standard input" in refused(file(text), Path("-"))
        accept(file(text.with_name("other")), Path("-"))
    finally:
        os.dup2(before, 0)
        os.close(before)


@pytest.mark.parametrize(
    "part", ["weights.safetensors", "METRICS.JSON", "vocabulary/new", "bilm/new", "log"]
)
def test_a_part_of_any_run_is_not_overwritten(run: Path, part: str) -> None:
    assert "is a part of the run" in refused(file(run / part))


def test_parts_of_other_folders_are_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = made(tmp_path / "corpus", "corpus.json", "words.txt", "training/offsets.bin")
    vectors = made(tmp_path / "vectors", "header.json", "vectors.npy", "index.npy")
    old = made(tmp_path / "old", "options.json", "weights.hdf5")
    new = made(tmp_path / "new", "bilm.json", "weights.safetensors")
    monkeypatch.setenv("ELMO_CACHE_ROOT", str(tmp_path / "cache"))
    for path, kind in {
        corpus / "training/offsets.bin": "corpus",
        corpus / "vocabulary.txt": "corpus",
        vectors / "index.npy": "folder of vectors",
        old / "weights.hdf5": "biLM",
        new / "softmax.safetensors": "biLM",
        tmp_path / "cache/downloads/x": "cache",
    }.items():
        assert f"is a part of the {kind} " in refused(file(path))
    accept(file(tmp_path / "cache/mine.txt"))


def test_a_part_that_is_a_link_is_still_a_part(run: Path, tmp_path: Path) -> None:
    (tmp_path / "store").write_text("")
    (run / "weights.safetensors").unlink()
    (run / "weights.safetensors").symlink_to(tmp_path / "store")
    assert "is a part of the run" in refused(file(run / "weights.safetensors"))
    assert "is a file of the input" in refused(file(tmp_path / "store"), run)


def test_own_files_may_be_added_to_a_run(run: Path) -> None:
    accept(file(run / "test.json", force=False), run)
    (run / "test.json").write_text("{}")
    accept(file(run / "test.json"), run)


def test_a_bilm_is_updated_in_its_own_folder_only(tmp_path: Path, run: Path) -> None:
    bilm = made(tmp_path / "bilm", "options.json", "weights.hdf5")
    accept(Output(bilm / "weights.hdf5", "--output-dir", updates="biLM"))
    own = Output(run / "bilm/weights.hdf5", "--output-dir", updates="biLM")
    assert "is a part of the run" in refused(own)
    read = Output(bilm / "weights.hdf5", "--output-dir", updates="biLM")
    assert "is a file of the input" in refused(read, bilm)


def test_a_file_that_exists_needs_force(text: Path) -> None:
    assert refused(file(text, force=False)) == (
        f"--output-file {text} already exists; pass --force to overwrite it, or choose another path"
    )
    accept(file(text))
    accept(file(text.with_name("new"), force=False))


def test_two_outputs_are_two_files(tmp_path: Path) -> None:
    one, two = tmp_path / "x", tmp_path / "inner/../x"
    with pytest.raises(RunError, match="are the same file"):
        check_outputs([Output(one, "--one"), Output(two, "--two")], [])


def test_devices_are_accepted() -> None:
    accept(file(Path(os.devnull), force=False), Path(os.devnull))


@pytest.mark.parametrize("name", ["text.txt", "hard", "*.txt", "."])
def test_input_that_standard_output_appends_to_is_refused(text: Path, name: str) -> None:
    os.link(text, text.with_name("hard"))
    with (
        standard_output_to(text),
        pytest.raises(RunError, match=r"^standard output is also an input \(FILE "),
    ):
        check_standard_output([Input(text.parent / name, "FILE")])


def test_standard_output_may_be_a_file_next_to_the_inputs(text: Path, run: Path) -> None:
    with standard_output_to(run / "predictions.jsonl"):
        check_standard_output([Input(text, "FILE"), Input(run, "RUN"), Input(Path("-"), "FILE")])
