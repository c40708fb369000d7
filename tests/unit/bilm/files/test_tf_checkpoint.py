import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from elmo_framework.bilm.files import crc32c as crc_module
from elmo_framework.bilm.files.crc32c import crc32c
from elmo_framework.bilm.files.tf_checkpoint import TfCheckpoint, checkpoint_prefix
from elmo_framework.errors import DataError
from tests.tf_checkpoints import MAGIC, entry, field, slow_crc32c, table, write_checkpoint

FIXTURE = Path("tests/fixtures/bilm_tf").absolute()
TENSORS = {
    f"lm/variable_{number}": np.random.default_rng(number).normal(size=(number, 3)).astype(dtype)
    for number, dtype in enumerate(["float32", "float64", "float16"] * 4)
}


def read(path: Path, name: str | None) -> None:
    checkpoint = TfCheckpoint(path)
    if name is not None:
        checkpoint.tensor(name)


def message(path: Path, name: str | None = None) -> str:
    with pytest.raises(DataError) as caught:
        read(path, name)
    return str(caught.value).replace(f"{path.parent}/", "")


def write_entries(prefix: Path, entries: dict[bytes, bytes]) -> Path:
    prefix.with_name(f"{prefix.name}.index").write_bytes(table(entries))
    prefix.with_name(f"{prefix.name}.data-00000-of-00001").write_bytes(bytes(16))
    return prefix


def test_checksum_has_the_published_values() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4
    assert crc32c(b"\xff" * 32) == 0x62A8AB43


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 1023, 1024, 1025, 5001])
def test_checksum_of_lanes_equals_a_loop(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = random.Random(size).randbytes(size)
    assert crc32c(data) == slow_crc32c(data)
    monkeypatch.setattr(crc_module, "_MAX_LANES", 2)  # several blocks, the last one shorter
    assert crc32c(data) == slow_crc32c(data)


@pytest.mark.parametrize("num_shards", [1, 2])
def test_tensors_are_read_from_blocks_and_shards(num_shards: int, tmp_path: Path) -> None:
    prefix = write_checkpoint(tmp_path / "model.ckpt-7", TENSORS, num_shards=num_shards)
    checkpoint = TfCheckpoint(prefix)
    assert checkpoint.shapes == {name: array.shape for name, array in TENSORS.items()}
    for name, array in TENSORS.items():
        read = checkpoint.tensor(name)
        assert read.dtype == array.dtype
        np.testing.assert_array_equal(read, array)


def test_a_checkpoint_is_found_by_folder_prefix_and_index(tmp_path: Path) -> None:
    folder = shutil.copytree(FIXTURE, tmp_path / "run")
    for path in (folder, folder / "model.ckpt-30", folder / "model.ckpt-30.index"):
        assert checkpoint_prefix(path) == folder / "model.ckpt-30"
    assert message(folder / "model.ckpt-31").startswith("model.ckpt-31: does not exist. Did")
    (folder / "model.ckpt-31.meta").touch()
    assert "model.ckpt-31.index does not exist" in message(folder / "model.ckpt-31")
    (folder / "model.ckpt-31").touch()
    assert "TensorFlow before 0.12" in message(folder / "model.ckpt-31")
    (folder / "checkpoint").write_text("nothing")
    assert message(folder) == "run/checkpoint: names no checkpoint"
    (folder / "checkpoint").unlink()
    assert message(folder).startswith("run: no file 'checkpoint' in this folder")


def test_an_index_of_tensorflow_is_read() -> None:
    shapes = TfCheckpoint(FIXTURE).shapes
    assert shapes["lm/softmax/W"] == (36, 8)
    assert shapes["lm/RNN_1/rnn/multi_rnn_cell/cell_1/lstm_cell/kernel"] == (16, 64)
    assert shapes["lm/global_step"] == ()


def test_every_damaged_byte_of_an_index_is_reported(tmp_path: Path) -> None:
    prefix = write_checkpoint(tmp_path / "ckpt", dict(list(TENSORS.items())[:4]))
    index = prefix.with_name("ckpt.index")
    content = index.read_bytes()
    for place in range(len(content) - 48):
        damaged = bytearray(content)
        damaged[place] ^= 0x41
        index.write_bytes(damaged)
        assert "not the index of a TensorFlow checkpoint" in message(prefix)


@pytest.mark.parametrize("size", [0, 20, 47, 60, 200])
def test_a_truncated_index_is_reported(size: int, tmp_path: Path) -> None:
    prefix = write_checkpoint(tmp_path / "ckpt", TENSORS)
    index = prefix.with_name("ckpt.index")
    content = index.read_bytes()
    index.write_bytes(content[:size])
    assert "does not end in the mark of a table" in message(prefix)
    index.write_bytes(content[:size] + MAGIC.to_bytes(8, "little"))
    assert "not the index of a TensorFlow checkpoint" in message(prefix)


def test_damaged_numbers_are_reported(tmp_path: Path) -> None:
    prefix = write_checkpoint(tmp_path / "ckpt", {"a": np.ones((2, 3), np.float32)})
    data = prefix.with_name("ckpt.data-00000-of-00001")
    content = data.read_bytes()
    data.write_bytes(content[:-1] + b"\x01")
    expected = "ckpt.data-00000-of-00001: variable 'a' is damaged: its checksum is wrong"
    assert message(prefix, "a") == expected
    data.write_bytes(content[:-1])
    assert "the file ends within variable 'a'" in message(prefix, "a")
    data.unlink()
    assert "ckpt.data-00000-of-00001: cannot be read" in message(prefix, "a")


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    array = np.zeros(4, np.float32)
    prefix = write_entries(
        tmp_path / "ckpt",
        {
            b"": field(1, 1),
            b"long": entry(array, 0, 0) + field(5, 12),
            b"sliced": entry(array, 0, 0, extra=field(7, b"")),
            b"step": entry(np.zeros((), np.int64), 0, 0),
        },
    )
    assert "the checkpoint has no variable 'a'" in message(prefix, "a")
    assert "variable 'sliced' is in slices" in message(prefix, "sliced")
    assert "variable 'step' is of TensorFlow's type 9" in message(prefix, "step")
    assert "variable 'long' has 12 bytes and the shape (4,)" in message(prefix, "long")
    assert "big-endian" in message(write_entries(prefix, {b"": field(1, 1) + field(2, 1)}))
    write_checkpoint(prefix, {"a": array}, compression=1)
    assert "a block is compressed" in message(prefix)
