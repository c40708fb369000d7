"""What a distribution needs besides `setup.cfg`: shipped configs, and equal bytes."""

import gzip
import os
import re
import tarfile
import time
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

CONFIGS = Path("experiments")
TASKS = ("coreference", "lib", "ner", "pretrain", "sick", "snli", "squad", "srl", "sst", "wsd")


class BuildWithConfigs(build_py):
    """Copies `experiments/TASK` to `elmo_framework/scaffold/experiments`."""

    def _configs(self):
        for task in TASKS:
            for path in sorted((CONFIGS / task).glob("*.*sonnet")):
                yield path, Path(self.build_lib, "elmo_framework/scaffold", path)

    def run(self):
        super().run()
        if not self.editable_mode:
            for source, target in self._configs():
                target.parent.mkdir(parents=True, exist_ok=True)
                self.copy_file(str(source), str(target))

    def get_source_files(self):
        return [*super().get_source_files(), *(str(source) for source, _ in self._configs())]

    def get_output_mapping(self):
        configs = {str(target): str(source) for source, target in self._configs()}
        return {**super().get_output_mapping(), **configs}

    def get_outputs(self, include_bytecode=True):
        targets = [str(target) for _, target in self._configs()]
        return [*super().get_outputs(include_bytecode), *targets]


class ReproducibleSdist(sdist):
    """Writes the same bytes for the same files and the same `SOURCE_DATE_EPOCH`."""

    def make_archive(self, base_name, format, base_dir=None, **_):
        epoch = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))

        def normalized(member):
            member.mtime, member.uid, member.gid = epoch, 0, 0
            member.uname = member.gname = ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            return member

        path = f"{base_name}.tar.gz"
        with (
            Path(path).open("wb") as raw,
            gzip.GzipFile("", "wb", fileobj=raw, mtime=epoch) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
        ):
            tar.add(base_dir, filter=normalized)
        return path


def description():
    """Return README without pictures and links to other files, which a package index lacks."""
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)\n+", "", Path("README.md").read_text(encoding="utf-8"))
    return re.sub(r"\[([^\]]*)\]\((?!https?:)[^)]*\)", r"\1", text)


setup(
    cmdclass={"build_py": BuildWithConfigs, "sdist": ReproducibleSdist},
    long_description=description(),
)
