from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import head_peers_allennlp
import pytest
from head_batches import HEADS, Batches, write_batches

from elmo_framework import components


@pytest.mark.parametrize("name", HEADS)
def test_batches_are_random_words_without_data(name: str, tmp_path: Path) -> None:
    components.load()
    path, head = tmp_path / "batches.json", replace(HEADS[name], data="no such file")
    write_batches(head, path)

    held = Batches.read(path)

    assert held.config["model"]["type"] in head_peers_allennlp.PARTS
    task = held.experiment(path).model.factory.task
    longest = [max(map(task.num_tokens, examples)) for examples in held.examples]
    times = 2 if name == "snli" else 1  # words of both sentences
    assert longest == [times * length for length in head.lengths]
    sizes = {len(examples) for examples in held.examples}
    assert sizes == {held.config["data_loader"]["batch_size"]}
