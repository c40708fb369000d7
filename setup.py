"""Copies the shipped configs into the package; `setup.cfg` has everything else."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

CONFIGS = Path("experiments")
TASKS = ("coreference", "lib", "ner", "pretrain", "snli", "squad", "srl", "sst", "wsd")


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


setup(cmdclass={"build_py": BuildWithConfigs})
