"""Runs and biLMs on the Hugging Face Hub: `hf://OWNER/NAME[@REVISION]`.

`huggingface_hub` is imported here and nowhere else, when a place on the Hub is used. Tokens are
those of its own login (`hf auth login`) or of `HF_TOKEN`; none is read or written here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from elmo_framework.errors import DataError
from elmo_framework.io.download import OFFLINE_REASON, is_offline
from elmo_framework.io.extras import import_extra
from elmo_framework.io.files import cache_root

_EXTRA = "hub"
_PLACE = re.compile(r"hf://([\w.-]+/[\w.-]+)(?:@([^\s@]+))?")
_ENDPOINT = "HF_ENDPOINT"


class HubPlace(NamedTuple):
    """A repository on the Hub, and its branch, tag or commit; None for the default branch."""

    repository: str
    revision: str | None


def is_hub_place(text: str) -> bool:
    """Return whether a text names a whole repository, and not a file in one."""
    return _PLACE.fullmatch(text) is not None


def hub_place(text: str) -> HubPlace:
    """Parse `hf://OWNER/NAME[@REVISION]`.

    Raises:
        DataError: it is something else.
    """
    match = _PLACE.fullmatch(text)
    if match is None:
        raise DataError(f"{text}: not a place on the Hub; write hf://OWNER/NAME[@REVISION]")
    return HubPlace(*match.groups())


def hub_cache() -> Path:
    """Return the folder of what was downloaded from the Hub."""
    return cache_root() / "hub"


def hub_folder(text: str) -> Path:
    """Return the local folder of a repository; its files are downloaded at the first use.

    An interrupted download resumes. A branch or a tag is looked up at each use; a commit is not.
    With `ELMO_OFFLINE=1` only what was downloaded before is used.

    Raises:
        DataError: it does not exist, may not be read, or cannot be downloaded.
        RunError: the extra `hub` is not installed.
    """
    place = hub_place(text)
    hub = import_extra("huggingface_hub", _EXTRA)
    with _errors(text):
        folder = hub.snapshot_download(
            place.repository,
            revision=place.revision,
            cache_dir=hub_cache(),
            local_files_only=is_offline(),
            endpoint=os.environ.get(_ENDPOINT),
        )
    return Path(folder)


def upload(folder: Path, text: str, *, names: Sequence[str] | None, is_private: bool) -> str:
    """Upload files of a folder as one commit; the repository is created if it does not exist.

    Args:
        folder: of the files.
        text: the place, with a branch as the revision if any.
        names: the files; None for all.
        is_private: whether a repository that is created is private.

    Returns:
        The place with its new commit.

    Raises:
        DataError: it may not be written, or cannot be reached.
        RunError: the extra `hub` is not installed.
    """
    place = hub_place(text)
    if is_offline():
        raise DataError(f"{text}: --offline or ELMO_OFFLINE is set")
    hub = import_extra("huggingface_hub", _EXTRA)
    api = hub.HfApi(endpoint=os.environ.get(_ENDPOINT))
    with _errors(text):
        api.create_repo(place.repository, private=is_private, exist_ok=True)
        commit = api.upload_folder(
            repo_id=place.repository,
            folder_path=folder,
            revision=place.revision,
            commit_message="Upload with elmo_framework",
            allow_patterns=None if names is None else [*names],
        )
    return f"hf://{place.repository}@{commit.oid}"


@contextmanager
def _errors(text: str) -> Iterator[None]:
    """Turn the errors of the library into one line."""
    errors: Any = import_extra("huggingface_hub.errors", _EXTRA)
    try:
        yield
    except errors.GatedRepoError as error:
        raise DataError(f"{text}: access is restricted; ask for it on its page") from error
    except errors.RepositoryNotFoundError as error:
        advice = "check the name; for a private one, log in with `hf auth login`"
        raise DataError(f"{text}: no such repository; {advice}") from error
    except errors.RevisionNotFoundError as error:
        raise DataError(f"{text}: no such branch, tag or commit") from error
    except (errors.LocalEntryNotFoundError, errors.LocalTokenNotFoundError) as error:
        reason = OFFLINE_REASON if is_offline() else "the Hub cannot be reached"
        raise DataError(f"{text}: not downloaded: {reason}") from error
    except Exception as error:  # each transport of the library has its own
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise DataError(f"{text}: {reason}") from error
