"""Places on the Hugging Face Hub, against a server on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants

from elmo_framework.errors import DataError
from elmo_framework.io.archives import is_from_elsewhere, local_folder
from elmo_framework.io.hub import hub_folder, hub_place, upload
from elmo_framework.io.remote import as_path
from tests.hub_server import LFS_SIZE, Hub, serving

FILES = {"options.json": b"{}", "inner/weights": bytes(range(256)) * 64}

# The library's, of its transport.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with serving() as server:
        monkeypatch.setenv("ELMO_CACHE_ROOT", str(tmp_path / "cache"))
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
        monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1000)
        monkeypatch.delenv("HF_TOKEN", raising=False)
        yield server


def read(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_files_are_uploaded_and_downloaded(hub: Hub, tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / "own" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "own" / name).write_bytes(content)
    place = upload(tmp_path / "own", "hf://me/model", names=None, is_private=False)
    commit = hub.branches["me/model"]["main"]
    assert place == f"hf://me/model@{commit}"
    assert max(map(len, FILES.values())) > LFS_SIZE  # both kinds of upload
    folder = local_folder(place)
    assert read(folder) == FILES
    assert is_from_elsewhere(folder)
    path = as_path("hf://me/model")
    assert path.is_dir()
    assert not path.is_file()
    assert (path / "options.json").read_text() == "{}"
    assert str(path) == str(path.absolute()) == "hf://me/model"


def test_a_cut_download_resumes_at_the_same_byte(hub: Hub) -> None:
    hub.commit("me/model", FILES)
    hub.cut_after = 5000
    assert read(hub_folder("hf://me/model")) == FILES
    ranges = [asked for method, _, asked, _ in hub.requests if method == "GET" and asked]
    assert ranges == ["bytes=5000-"]


def test_revisions_pin_files_and_offline_uses_the_cache(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = hub.commit("me/model", FILES)
    hub.branches["me/model"]["v1"] = first
    hub.commit("me/model", {"options.json": b"[]"})
    assert read(hub_folder("hf://me/model")) == {"options.json": b"[]"}
    assert read(hub_folder("hf://me/model@v1")) == FILES
    monkeypatch.setenv("ELMO_OFFLINE", "1")
    before = len(hub.requests)
    assert read(hub_folder(f"hf://me/model@{first}")) == FILES
    with pytest.raises(DataError, match="hf://me/other: not downloaded: --offline or ELMO_OFFLINE"):
        hub_folder("hf://me/other")
    with pytest.raises(DataError, match="ELMO_OFFLINE is set"):
        upload(Path(), "hf://me/model", names=None, is_private=False)
    assert len(hub.requests) == before


def test_the_token_is_that_of_its_own_login(hub: Hub, tmp_path: Path) -> None:
    hub.commit("me/model", FILES)
    hub.private.add("me/model")
    with pytest.raises(DataError, match=r"no such repository; .* log in with `hf auth login`"):
        hub_folder("hf://me/model")
    (tmp_path / "token").write_text("secret")
    assert read(hub_folder("hf://me/model")) == FILES


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("hf://me/none", "hf://me/none: no such repository"),
        ("hf://me/model@none", "hf://me/model@none: no such branch, tag or commit"),
        ("hf://me", "write hf://OWNER/NAME"),
    ],
)
def test_a_wrong_place_is_a_data_error(hub: Hub, place: str, message: str) -> None:
    hub.commit("me/model", FILES)
    with pytest.raises(DataError, match=message):
        hub_folder(place)


def test_an_unreachable_server_is_a_data_error(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(DataError, match="hf://me/model: not downloaded: the Hub cannot be reached"):
        hub_folder("hf://me/model")
    with pytest.raises(DataError, match="hf://me/model: "):
        upload(Path(), "hf://me/model", names=None, is_private=False)


def test_places_are_parsed() -> None:
    assert hub_place("hf://a/b") == ("a/b", None)
    assert hub_place("hf://a-b/c.d_e@refs/pr/1") == ("a-b/c.d_e", "refs/pr/1")
