"""Whether a record is of the config and of the test data that a study has now."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from elmo_framework.experiment.config_changes import Change, changes, shown_change
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.io.files import digest

_IGNORED = "plugins"
"""Also has the modules of --include-package."""


def changed_keys(
    before: Mapping[str, Any],
    now: Mapping[str, Any],
    *,
    is_moved: Callable[[Change], bool],
    given: Mapping[str, Any] | None = None,
) -> list[str]:
    """List where a config differs from that of a record: `path: value before -> value now`.

    A path that is only written in another way is no difference.

    Args:
        before: the config of the record or of the run, with all defaults.
        now: the same of the study.
        is_moved: whether a change is that of the path of a file that was moved, which is no
            difference.
        given: the config of the study as its user wrote it: keys of later versions that it does
            not set are no difference.
    """
    return [
        shown_change(change)
        for change in changes(before, now, given=given)
        if change[0].split(".")[0].split("[")[0] != _IGNORED
        and not (_is_same_path(change) or is_moved(change))
    ]


def digest_of_test_data(experiment: Experiment, path: Path) -> str:
    """Return the SHA-256 of the test data of a run, which its experiment does not name.

    Raises:
        DataError: they are not there.
    """
    return digest(experiment.reader("test").files(path))


def _is_same_path(change: Change) -> bool:
    _, before, now = change
    are_paths = isinstance(before, str) and isinstance(now, str)
    return are_paths and Path(before).absolute() == Path(now).absolute()


def is_moved(change: Change, digests: Collection[str]) -> bool:
    """Return whether a change is that of the path of a file that was moved.

    It is recognized by its name, and, if it is there, by the digest of its content.

    Args:
        change: of a value in the config.
        digests: SHA-256 of the files of the record.
    """
    _, before, now = change
    if not (isinstance(before, str) and isinstance(now, str)):
        return False
    if "/" not in before + now or Path(before).name != Path(now).name:
        return False
    path = Path(now)
    return not path.exists() or (path.is_file() and digest([path]) in digests)
