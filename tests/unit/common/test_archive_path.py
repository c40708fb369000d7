from pathlib import Path

import pytest

from elmo_framework.common.archive_path import ArchivePath, archive_path


@pytest.mark.parametrize(
    ("path", "file", "inner"),
    [
        ("vectors.txt", "vectors.txt", None),
        ("a (1).txt", "a (1).txt", None),
        ("(glove.zip)#glove.6B.50d.txt", "glove.zip", "glove.6B.50d.txt"),
        ("data/(glove.zip)#sub/glove.txt", "data/glove.zip", "sub/glove.txt"),
        ("(/data/glove.zip)#x.txt", "/data/glove.zip", "x.txt"),
    ],
)
def test_the_archive_and_the_file_in_it_are_told_apart(path, file, inner):
    assert archive_path(Path(path)) == ArchivePath(Path(file), inner)


@pytest.mark.parametrize("file", ["glove.zip", "/data/glove.zip"])
def test_an_absolute_form_means_the_same_file(tmp_path, monkeypatch, file):
    monkeypatch.chdir(tmp_path)

    found = archive_path(Path(f"({file})#x.txt").absolute())

    assert found == ArchivePath(Path(file).absolute(), "x.txt")
