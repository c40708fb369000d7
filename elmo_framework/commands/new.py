"""`elmo new`: from data to a config, and the starting points of configs and plugins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, final

from elmo_framework.commands.command import Command, output_files, register_components
from elmo_framework.config.arguments import Argument, Force
from elmo_framework.errors import RunError
from elmo_framework.io.outputs import Input, Output


@final
@dataclass(frozen=True, kw_only=True)
class New(Command):
    """Write a config for a data file, a shipped config, or the package of a plugin.

    Attributes:
        data: a file or a folder to train on: a table, JSON lines, CoNLL columns, CoNLL-U, SQuAD's
            JSON, a folder of texts for each label, or plain text.
        task: what to learn, if it is not recognized: classification, multi_label (any number of
            labels for each text), regression (numbers), entailment (pairs of texts), tagging,
            question_answering or language_modeling; with --from, the task or its folder
            in experiments.
        texts: the column of the texts; two for pairs.
        label: the column of the labels or tags.
        language: the language of the text, as in spaCy: en, de, ...; recognized by default.
        encoding: the encoding of FILE if it is not UTF-8, such as cp1252; a copy in UTF-8 is
            written.
        bilm: the folder of a biLM, or of its run, or its name (default: %(default)s).
        shipped: write a shipped config of --task, such as baseline or elmo.
        small: with --from, add the settings for two cores.
        plugin: write a package with a reader, a head, a config and a test.
        output_file: the config; by default next to the data, or in the current folder.
        force: overwrite an existing config.
    """

    name = "new"
    epilog = """\
examples:
  elmo new reviews.csv                         writes reviews.jsonnet and prints what to do next
  elmo new notes.csv --text report --label outcome
  elmo new corpus/train.conll                  also finds corpus/dev.conll
  elmo new letters.csv --encoding cp1252       of a spreadsheet that does not write UTF-8
  elmo new reviews                             a folder with a folder of texts for each label
  elmo new --task ner --from elmo              a shipped config, as one file
  elmo new --plugin my_plugin
"""

    data: Annotated[Path | None, Argument("FILE", is_positional=True)] = None
    task: Annotated[str | None, Argument("NAME")] = None
    texts: Annotated[Sequence[str], Argument("COLUMN", flags=("--text",))] = ()
    label: Annotated[str | None, Argument("COLUMN")] = None
    language: Annotated[str | None, Argument("CODE")] = None
    encoding: Annotated[str | None, Argument("NAME")] = None
    bilm: Annotated[str, Argument("BILM")] = "mini"
    shipped: Annotated[str | None, Argument("NAME", flags=("--from",))] = None
    small: bool = False
    plugin: Annotated[str | None, Argument("NAME")] = None
    output_file: Annotated[Path | None, Argument("FILE")] = None
    force: Force = False

    def outputs(self) -> Sequence[Output]:
        paths = {"--output-file": self._output()} if self.plugin is None else {}
        return output_files(paths, force=self.force)

    def inputs(self) -> Sequence[Input]:
        return [] if self.data is None else [Input(self.data, "FILE")]

    def run(self) -> int:
        self._check_combination()
        if self.plugin is not None:
            return self._write_plugin(self.plugin)
        if self.shipped is not None:
            return self._write_shipped(self.shipped)
        assert self.data is not None
        return self._write_for_data(self.data)

    def _output(self) -> Path | None:
        if self.output_file is not None:
            return self.output_file
        if self.shipped is not None and self.task is not None:
            return Path(f"{self.task}-{self.shipped}.jsonnet")
        return None if self.data is None else _config_path(self.data)

    def _check_combination(self) -> None:
        """Raise RunError unless the arguments say one thing to write."""
        given = {"FILE": self.data, "--from": self.shipped, "--plugin": self.plugin}
        names = [name for name, value in given.items() if value is not None]
        if len(names) > 1:
            raise RunError(f"{' and '.join(names)}: pass one of them")
        if not names:
            raise RunError(
                "nothing to write: pass a data file, --task with --from, or --plugin; see "
                "`elmo new --help`"
            )
        of_data = {
            "--text": self.texts,
            "--label": self.label,
            "--language": self.language,
            "--encoding": self.encoding,
        }
        unused = [flag for flag, value in of_data.items() if value and self.data is None]
        if self.small and self.shipped is None:
            unused.append("--small")
        if self.task and self.plugin:
            unused.append("--task")
        if unused:
            raise RunError(f"{unused[0]} is not for {names[0]}")

    def _write_plugin(self, text: str) -> int:
        from elmo_framework.scaffold.plugin import plugin_name, write_plugin

        name = plugin_name(text)
        if self.output_file or self.force:
            raise RunError("--plugin writes a new folder with the name of the plugin")
        folder = Path(name)
        if folder.exists():
            raise RunError(f"{folder} already exists; remove it, or choose another name")
        for path in write_plugin(name, folder):
            print(f"wrote {path}")
        _print_commands(
            f"cd {folder}",
            "pip install -e .",
            "elmo train config.jsonnet -s runs/first",
            "python -m pytest",
        )
        return 0

    def _write_shipped(self, name: str) -> int:
        from elmo_framework.io.files import writing
        from elmo_framework.scaffold.shipped import FOLDERS, shipped_config

        if self.task is None:
            raise RunError(f"--from needs --task; choose from {', '.join(FOLDERS)}")
        text = shipped_config(self.task, name, small=self.small)
        path = self._output()
        assert path is not None
        with writing(path) as file:
            file.write(text)
        print(f"wrote {path}")
        print("set its data paths, files of word vectors and biLM, or override them with -o:")
        _print_commands(f"elmo check {path}", f"elmo train {path} -s runs/{path.stem}")
        return 0

    def _write_for_data(self, data: Path) -> int:
        register_components(())
        from elmo_framework.scaffold.new_config import ConfigRequest, new_config

        request = ConfigRequest(
            data=data,
            task=self.task,
            texts=self.texts,
            label=self.label,
            language=self.language,
            encoding=self.encoding,
            bilm=self.bilm,
            command=self._command_line(data),
            force=self.force,
        )
        written = new_config(request, self.output_file or _config_path(data))
        print("\n".join(written.lines))
        _print_commands(*written.commands)
        return 0

    def _command_line(self, data: Path) -> str:
        """Return the command, for the comment of the config."""
        import shlex

        flags = {
            "--task": [self.task],
            "--text": self.texts,
            "--label": [self.label],
            "--language": [self.language],
            "--encoding": [self.encoding],
            "--bilm": [self.bilm if self.bilm != "mini" else None],
        }
        pairs = [
            part
            for flag, values in flags.items()
            for value in values
            if value
            for part in (flag, value)
        ]
        return shlex.join(["elmo", "new", str(data), *pairs])


def _config_path(data: Path) -> Path:
    """Return where the config of data is written: next to it, with its name."""
    from elmo_framework.data.formats.compressed import data_suffix
    from elmo_framework.io.remote import RemotePath

    if isinstance(data, RemotePath):
        return Path(f"{Path(data.name).stem}.jsonnet")
    if not data.name:  # such as `.`
        data = data.resolve()
    if data.is_dir():
        return data.with_name(f"{data.name}.jsonnet")
    end = data.name.casefold().rfind(data_suffix(data)) if data_suffix(data) else len(data.name)
    return data.with_name(f"{data.name[:end] or data.name}.jsonnet")


def _print_commands(*commands: str) -> None:
    print("\nnext:")
    for command in commands:
        print(f"  {command}")
