"""The components of spaCy: `elmo`. tests/experiment/test_python_use.py has `elmo_ner`."""

from __future__ import annotations

import configparser
import importlib
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc

import elmo_framework.integrations.spacy_factories  # noqa: F401
from elmo_framework import load_bilm
from elmo_framework.errors import DataError
from elmo_framework.integrations import set_vector_hooks
from elmo_framework.layers import layer_source
from tests.conftest import ROOT

TEXTS = ["Words are words.  They bark.", "", " \n ", "The bark", "many more words are here"] * 2


def pipeline(bilm: str | Path, *, sentences: bool = False, **config) -> Language:
    nlp = spacy.blank("en")
    if sentences:
        nlp.add_pipe("sentencizer")
    nlp.add_pipe("elmo", config={"bilm": str(bilm), "device": "cpu", **config})
    return nlp


def require_close(one: Doc, other: Doc) -> None:
    np.testing.assert_allclose(one.tensor, other.tensor, atol=1e-5)


def test_spacy_finds_the_components_without_an_import() -> None:
    setup = configparser.ConfigParser(interpolation=None)
    setup.read(Path(__file__).parents[3] / "setup.cfg")
    lines = setup["options.entry_points"]["spacy_factories"].split("\n")[1:]
    for name, place in (line.split(" = ") for line in lines):
        module, function = place.split(":")
        assert Language.get_factory_meta(name).factory == name
        assert callable(getattr(importlib.import_module(module), function))


@pytest.mark.parametrize("layers", ["average", "top", 0, [0, 2]])
def test_vectors_of_tokens_are_those_of_words(bilm: str, layers) -> None:
    doc = pipeline(bilm, layers=layers)("Words are\n words")
    assert [token.is_space for token in doc] == [False, False, True, False]
    ((_, expected),) = load_bilm(bilm).words([["Words", "are", "words"]], layers=layers)
    expected = np.concatenate([*expected], axis=-1) if expected.ndim == 3 else expected
    assert doc.tensor.dtype == np.float32
    np.testing.assert_allclose(doc.tensor[[0, 1, 3]], expected, atol=1e-6)
    assert not doc.tensor[2].any()
    np.testing.assert_array_equal(doc[3].vector, doc.tensor[3])
    np.testing.assert_allclose(doc.vector, expected.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(doc[0:2].vector, expected[:2].mean(axis=0), atol=1e-6)


def test_sentences_are_read_alone(bilm: str) -> None:
    together, alone = (pipeline(bilm, sentences=each)(TEXTS[0]) for each in (False, True))
    expected = load_bilm(bilm).words(["Words are words.", "They bark."])
    places = [token.i for token in alone if not token.is_space]
    found = alone.tensor[places]
    np.testing.assert_allclose(
        found, np.concatenate([each.vectors for each in expected]), atol=1e-6
    )
    assert (together.tensor != alone.tensor).any()


@pytest.mark.parametrize("options", [{"batch_size": 3}, {"batch_size": 2, "n_process": 2}], ids=str)
def test_batches_and_processes_change_nothing(bilm: str, options) -> None:
    nlp = pipeline(bilm, sentences=True)
    docs = list(nlp.pipe(TEXTS, **options))
    assert [doc.text for doc in docs] == TEXTS
    for doc in docs:
        require_close(doc, nlp(doc.text))


def test_similarity_is_that_in_context(bilm: str) -> None:
    nlp = pipeline(bilm)
    first, second = nlp("a bark of words"), nlp("many bark")
    one, other = first[1], second[1]
    cosine = one.vector @ other.vector / one.vector_norm / other.vector_norm
    assert one.similarity(other) == pytest.approx(cosine, abs=1e-6)
    assert cosine < 0.9999
    assert first.similarity(first) == pytest.approx(1, abs=1e-6)
    assert first[0:2].similarity(second) == pytest.approx(second.similarity(first[0:2]), abs=1e-6)
    assert nlp("").similarity(first) == 0
    assert not nlp("").has_vector


def test_documents_can_be_pickled_and_restored(bilm: str) -> None:
    doc = pipeline(bilm)("a bark of bark")
    expected = doc[1].similarity(doc[3])
    assert expected < 0.9999
    pickled = pickle.loads(pickle.dumps(doc))
    assert pickled[1].similarity(pickled[3]) == expected
    with pytest.warns(UserWarning, match="W109"):
        restored = Doc(doc.vocab).from_bytes(doc.to_bytes())
    assert set_vector_hooks(restored)[1].similarity(restored[3]) == expected


def test_long_document_is_read_in_parts(bilm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [f"word{number % 50}" for number in range(150)]
    ((_, expected),) = load_bilm(bilm).words([words])
    monkeypatch.setattr(layer_source, "_LONGEST_WHOLE", 40)
    nlp = pipeline(bilm)
    doc = nlp(Doc(nlp.vocab, words=words))
    np.testing.assert_allclose(doc.tensor, expected, atol=1e-5)


def test_saved_pipeline_has_the_digest_and_not_the_weights(
    bilm: str, other: Path, tmp_path
) -> None:
    nlp = pipeline(bilm, layers="top")
    nlp.to_disk(tmp_path / "nlp")
    saved = tmp_path / "nlp/elmo"
    assert sum(path.stat().st_size for path in saved.iterdir()) < 1000
    loaded = spacy.load(tmp_path / "nlp")
    require_close(loaded("a bark"), nlp("a bark"))
    require_close(pickle.loads(pickle.dumps(nlp))("a bark"), nlp("a bark"))
    moved = {"components": {"elmo": {"bilm": str(other)}}}
    with pytest.raises(DataError, match=r"not the one that the pipeline was saved with.*name that"):
        spacy.load(tmp_path / "nlp", config=moved)
    with pytest.raises(DataError, match="not the one that the pipeline was saved with"):
        pipeline(other).from_bytes(nlp.to_bytes())


@pytest.mark.parametrize(
    ("error", "message", "config"),
    [
        (ValueError, "layers is 9", {"layers": 9}),
        (DataError, "Did you mean 'mini'", {"bilm": "minni"}),
    ],
)
def test_wrong_config_is_refused(bilm: str, error, message, config) -> None:
    with pytest.raises(error, match=message):
        pipeline(**{"bilm": bilm, **config})


def test_tagger_without_final_weights_has_a_digest(tmp_path: Path) -> None:
    fixtures = ROOT / "tests/fixtures/first_version"
    run = shutil.copytree(fixtures / "runs/ner_interrupted", tmp_path / "run")
    config = run / "filled_config.json"
    config.write_text(config.read_text().replace("/first_version", str(fixtures)))
    nlp = spacy.blank("en")
    component: Any = nlp.add_pipe("elmo_ner", config={"run": str(run), "device": "cpu"})
    assert component.from_bytes(component.to_bytes()) is component
