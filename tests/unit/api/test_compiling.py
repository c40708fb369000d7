import subprocess
import sys
from pathlib import Path

import pytest
import torch

from elmo_framework import Elmo, batch_to_ids
from elmo_framework.bilm.files.load import bilm_files, read_bilm

REFUSED = "a biLM cannot be exported or traced"
COMPILE = """
import sys
import torch
from elmo_framework import Elmo, batch_to_ids

elmo = Elmo(*sys.argv[1:], num_output_representations=1).eval()
assert "torch._dynamo" not in sys.modules, "the compiler is imported without need"
batches = [batch_to_ids(words) for words in ([["a", "word"], ["b"]], [["another", "one", "."]])]
expected = [elmo(ids) for ids in batches]
compiled = torch.compile(elmo, backend="eager")
for ids, before in zip(batches, expected):
    after = compiled(ids)
    assert torch.equal(after["mask"], before["mask"])
    assert torch.equal(*(held["elmo_representations"][0] for held in (before, after)))
"""


@pytest.mark.slow
def test_compiled_elmo_gives_the_same_vectors(folder: Path) -> None:
    # In a process of its own: the compiler cannot trace the checks of shapes that tests have.
    files = folder / "options.json", folder / "weights.hdf5"
    subprocess.run([sys.executable, "-c", COMPILE, *files], check=True)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_unsupported_export_raises_an_error(folder: Path) -> None:
    elmo = Elmo(folder / "options.json", folder / "weights.hdf5", 1).eval()
    ids = batch_to_ids([["a", "word"]])
    with pytest.raises(RuntimeError, match=REFUSED):
        torch.export.export(elmo, (ids,), strict=False)
    with pytest.raises(RuntimeError, match=REFUSED):
        torch.jit.trace(elmo, (ids,))
    with pytest.raises(RuntimeError, match=REFUSED):
        torch.jit.script(torch.nn.Sequential(elmo))
    with pytest.raises(RuntimeError, match=REFUSED):
        torch.jit.script(read_bilm(bilm_files(folder)))
