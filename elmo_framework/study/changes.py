"""Whether a record is of the config and of the test data that a study has now."""

from __future__ import annotations

from collections.abc import Collection, Mapping
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
    digests: Collection[str],
    *,
    given: Mapping[str, Any] | None = None,
) -> list[str]:
    """List where a config differs from that of a record: `path: value before -> value now`.

    A file that was moved is no difference. It is recognized by its name, and, if it is there, by
    the digest of its content.

    Args:
        before: the config of the record or of the run, with all defaults.
        now: the same of the study.
        digests: SHA-256 of the data of the record.
        given: the config of the study as its user wrote it: keys of later versions that it does
            not set are no difference.
    """
    return [
        shown_change(change)
        for change in changes(before, now, given=given)
        if change[0].split(".")[0].split("[")[0] != _IGNORED and not _is_moved(change, digests)
    ]


def digest_of_test_data(experiment: Experiment, path: Path) -> str:
    """Return the SHA-256 of the test data of a run, which its experiment does not name.

    Raises:
        DataError: they are not there.
    """
    return digest(experiment.reader("test").files(path))


def _is_moved(change: Change, digests: Collection[str]) -> bool:
    _, before, now = change
    if not (isinstance(before, str) and isinstance(now, str)):
        return False
    if Path(before).absolute() == Path(now).absolute():
        return True
    if "/" not in before + now or Path(before).name != Path(now).name:
        return False
    path = Path(now)
    return not path.exists() or (path.is_file() and digest([path]) in digests)
