import json
import re
import sys
from pathlib import Path

import pytest
import torch

from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.files.load import bilm_files, read_bilm, reference, save_bilm
from elmo_framework.config.parse import parse
from elmo_framework.errors import DataError, ElmoFrameworkError
from tests.numpy_bilm import NumpyBiLm

PLUGIN = '''
from torch import nn

from elmo_framework.bilm.token_encoder import TokenEncoder
from elmo_framework.data.characters import ElmoCharacterIndexer


@TokenEncoder.register("{name}")
class BagOfBytes(TokenEncoder):
    """Adds the vectors of a word's bytes.

    Args:
        dim: the width of a vector.
    """

    def __init__(self, *, dim: int = 4) -> None:
        super().__init__()
        self.indexer, self.output_dim = ElmoCharacterIndexer(8), dim
        self.table = nn.Embedding(262, dim, padding_idx=0)

    def forward(self, characters):
        return self.table(characters).sum(dim=-2)
'''


@pytest.fixture
def generic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BiLm:
    """A biLM with a token encoder of a plugin's."""
    name = re.sub(r"\W", "_", tmp_path.name)
    (tmp_path / f"plugin_{name}.py").write_text(PLUGIN.format(name=name))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    __import__(f"plugin_{name}")
    raw = {
        "token_encoder": {"type": name},
        "context_layers": {"type": "elmo_lstm", "cell_size": 6, "projection_dim": 4},
    }
    return parse(BiLm, raw, source="test").build()


def load(path: Path, *, requires_grad: bool = False) -> BiLm:
    return read_bilm(bilm_files(path), requires_grad=requires_grad)


def assert_equal(one: BiLm, other: BiLm) -> None:
    assert one.description == other.description
    for name, values in one.state_dict().items():
        assert torch.equal(values, other.state_dict()[name]), name


def test_saved_bilm_loads_from_its_folder_and_its_run(bilm, tmp_path: Path) -> None:
    save_bilm(bilm.float(), tmp_path / "run" / "bilm")
    assert_equal(load(tmp_path / "run" / "bilm"), bilm)
    assert_equal(load(tmp_path / "run"), bilm)
    names = {path.name for path in (tmp_path / "run" / "bilm").iterdir()}
    assert names == {"options.json", "weights.hdf5"}


def test_a_bilm_with_other_parts_is_saved_and_loaded(generic: BiLm, tmp_path: Path) -> None:
    save_bilm(generic, tmp_path / "saved")
    assert_equal(load(tmp_path / "saved"), generic)
    names = {path.name for path in (tmp_path / "saved").iterdir()}
    assert names == {"bilm.json", "weights.safetensors"}


def test_loading_leaves_the_random_generators_alone(generic: BiLm, tmp_path: Path) -> None:
    save_bilm(generic, tmp_path / "saved")
    before = torch.get_rng_state()
    load(tmp_path / "saved")
    assert torch.equal(torch.get_rng_state(), before)


def test_plugins_of_custom_parts_are_saved_and_imported(generic: BiLm, tmp_path: Path) -> None:
    save_bilm(generic, tmp_path / "saved")
    module = type(generic.token_encoder).__module__
    path = tmp_path / "saved" / "bilm.json"
    description = json.loads(path.read_text())
    assert description["plugins"] == [module]
    path.write_text(json.dumps({**description, "plugins": ["no_such_plugin_anywhere"]}))
    with pytest.raises(ElmoFrameworkError, match="no_such_plugin_anywhere"):
        load(tmp_path / "saved")
    assert module in sys.modules


def test_saving_leaves_no_files_of_the_other_kind(bilm, generic: BiLm, tmp_path: Path) -> None:
    save_bilm(generic, tmp_path / "saved")
    save_bilm(bilm.float(), tmp_path / "saved")
    assert_equal(load(tmp_path / "saved"), bilm)
    save_bilm(generic, tmp_path / "saved")
    assert_equal(load(tmp_path / "saved"), generic)


def test_saving_leaves_other_files_alone(bilm, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    save_bilm(bilm, tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_loaded_bilm_is_not_trained_unless_asked(numpy_bilm, tmp_path: Path) -> None:
    folder = numpy_bilm.save(tmp_path)
    frozen, trained = load(folder), load(folder, requires_grad=True)
    assert not any(parameter.requires_grad for parameter in frozen.parameters())
    assert all(parameter.requires_grad for parameter in trained.parameters())
    assert not frozen.training
    assert not trained.training


def test_digest_depends_on_contents_and_not_on_location(numpy_bilm, tmp_path: Path) -> None:
    first, second = numpy_bilm.save(tmp_path / "a"), numpy_bilm.save(tmp_path / "b")
    found = reference(bilm_files(first))
    assert found.path == (first / "weights.hdf5").absolute()
    assert found.digest == reference(bilm_files(second)).digest
    numpy_bilm.weights["CNN_proj/b_proj"][0] += 1
    assert reference(bilm_files(numpy_bilm.save(tmp_path / "b"))).digest != found.digest


def test_under_the_meta_device_no_weights_are_read(bilm, generic: BiLm, tmp_path: Path) -> None:
    for name, saved in (("tf", bilm), ("generic", generic)):
        save_bilm(saved, tmp_path / name)
        bilm_files(tmp_path / name).weights.unlink()
        with torch.device("meta"):
            loaded = load(tmp_path / name)
            assert reference(bilm_files(tmp_path / name)).digest
        assert loaded.description == saved.description
        assert all(parameter.is_meta for parameter in loaded.parameters())


def test_weights_come_in_the_default_type(numpy_bilm, tmp_path: Path) -> None:
    folder = numpy_bilm.save(tmp_path)
    torch.set_default_dtype(torch.float64)
    try:
        loaded = load(folder)
    finally:
        torch.set_default_dtype(torch.float32)
    assert {parameter.dtype for parameter in loaded.parameters()} == {torch.float64}


def test_a_folder_without_a_bilm_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        load(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}: no folder of a biLM: neither it nor a folder bilm in it holds "
        "options.json or bilm.json"
    )
    (tmp_path / "bilm").mkdir()
    with pytest.raises(DataError, match=r"bylm: does not exist. Did you mean '.*bilm'\?"):
        load(tmp_path / "bylm")


def test_the_embedder_of_a_transformer_is_named(tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).touch()
    with pytest.raises(DataError, match="use the embedder `pretrained_transformer_mismatched`"):
        load(tmp_path)


@pytest.mark.parametrize("key", ["n_highway", "n_layers"])
def test_layers_that_the_options_lack_are_refused(
    key: str, numpy_bilm: NumpyBiLm, tmp_path: Path
) -> None:
    folder = numpy_bilm.save(tmp_path)
    options = json.loads((folder / "options.json").read_text())
    options["char_cnn" if key == "n_highway" else "lstm"][key] = 1
    (folder / "options.json").write_text(json.dumps(options))
    with pytest.raises(DataError, match=r"belongs to a layer that options\.json does not have"):
        load(folder)


def test_unfinished_run_is_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(DataError, match=r"that has not ended, use `elmo export`$"):
        load(tmp_path)
    (tmp_path / "metrics.json").touch()
    with pytest.raises(DataError, match=r"that of a head: name the biLM that the head reads$"):
        load(tmp_path)


def test_missing_weights_are_refused(numpy_bilm, tmp_path: Path) -> None:
    folder = numpy_bilm.save(tmp_path)
    (folder / "weights.hdf5").unlink()
    with pytest.raises(DataError, match=r"weights.hdf5"):
        load(folder)
    files = bilm_files(folder)
    with pytest.raises(DataError, match=r"weights.hdf5: file not found$"):
        reference(files)
    files.options.unlink()
    with pytest.raises(DataError, match=r"options.json: file not found$"):
        reference(files)
    files.options.mkdir()
    with pytest.raises(DataError, match=r"options.json: not a file of a biLM"):
        reference(files)


@pytest.mark.parametrize("damage", [lambda content: content[:100], lambda content: b""])
def test_damaged_weights_of_other_parts_are_refused(generic, tmp_path: Path, damage) -> None:
    save_bilm(generic, tmp_path / "saved")
    weights = tmp_path / "saved" / "weights.safetensors"
    weights.write_bytes(damage(weights.read_bytes()))
    with pytest.raises(DataError, match=r"weights.safetensors: no tensors can be read"):
        load(tmp_path / "saved")


def test_weights_of_another_size_are_refused(generic: BiLm, tmp_path: Path) -> None:
    save_bilm(generic, tmp_path / "saved")
    path = tmp_path / "saved" / "bilm.json"
    path.write_text(path.read_text().replace('"cell_size": 6', '"cell_size": 7'))
    with pytest.raises(DataError, match=r"not the weights of this biLM: .*size mismatch"):
        load(tmp_path / "saved")


@pytest.mark.parametrize("content", ["{", "[1]", "3"])
def test_a_damaged_description_is_refused(generic: BiLm, tmp_path: Path, content: str) -> None:
    save_bilm(generic, tmp_path / "saved")
    (tmp_path / "saved" / "bilm.json").write_text(content)
    with pytest.raises(DataError, match=r"bilm.json: not a description of a biLM"):
        load(tmp_path / "saved")
