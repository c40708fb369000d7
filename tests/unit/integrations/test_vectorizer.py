"""`ElmoVectorizer` as scikit-learn uses its transformers."""

from __future__ import annotations

import pickle
import shutil
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import validate_data

from elmo_framework import ElmoVectorizer, load_bilm
from elmo_framework.errors import DataError, RunError
from elmo_framework.integrations import vectorizer
from elmo_framework.layers.bilm_source import FrozenBiLm

TEXTS = [f"{word} is {number}." for number in range(6) for word in ("good", "bad")]
LABELS = ["yes", "no"] * 6
GRID = {"elmovectorizer__layers": ["average", "top", 0, [0, 2]]}


@pytest.fixture(autouse=True)
def _empty_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectorizer, "_memory", vectorizer._Memory())


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sentences that the biLM has read, in order."""
    sentences, compute = [], FrozenBiLm.compute

    def noted(self, text, state=None):
        sentences.extend(map(" ".join, text.words))
        return compute(self, text, state)

    monkeypatch.setattr(FrozenBiLm, "compute", noted)
    return sentences


@pytest.mark.parametrize("layers", ["average", "top", -2])
@pytest.mark.parametrize("pool", ["mean", "max", "first_last"])
def test_vectors_are_those_of_sentences(bilm: str, layers, pool) -> None:
    texts = [*TEXTS, "", ["a", "list"]]
    found = ElmoVectorizer(bilm, layers=layers, pool=pool).fit_transform(texts)
    assert found.dtype == np.float32
    expected = load_bilm(bilm).sentences(texts, layers=layers, pool=pool)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_an_iterator_is_read_once(bilm: str) -> None:
    found = ElmoVectorizer(bilm).fit_transform(iter(TEXTS))
    np.testing.assert_array_equal(found, ElmoVectorizer(bilm).fit_transform(TEXTS))
    assert len(found) == len(TEXTS)


def test_several_layers_are_concatenated(bilm: str) -> None:
    both = ElmoVectorizer(bilm, layers=[0, 2]).fit(TEXTS)
    single = [ElmoVectorizer(bilm, layers=layer).fit_transform(TEXTS) for layer in (0, 2)]
    np.testing.assert_array_equal(both.transform(TEXTS), np.concatenate(single, axis=1))
    assert [*both.get_feature_names_out()[[0, 15]]] == ["elmo0", "elmo15"]
    assert both.num_features_ == len(both.get_feature_names_out()) == 16
    assert both.transform([]).shape == (0, 16)


def test_a_grid_of_layers_reads_each_text_once(bilm: str, read: list[str]) -> None:
    model = make_pipeline(ElmoVectorizer(bilm), LogisticRegression())
    search = GridSearchCV(model, GRID, cv=3, error_score="raise").fit(TEXTS, LABELS)
    assert sorted(read) == sorted(text.replace(".", " .") for text in TEXTS)
    assert set(search.predict(["bad is 9."])) <= {"yes", "no"}


def test_beyond_the_bound_the_oldest_texts_are_read_again(bilm, read, monkeypatch) -> None:
    monkeypatch.setattr(vectorizer, "_MAX_BYTES", 3 * 4 * 8 * 4)
    model = ElmoVectorizer(bilm, tokenizer="whitespace").fit([])
    expected = model.transform(["a", "b", "c", "d"])
    del read[:]
    np.testing.assert_allclose(model.transform(["d", "a"]), expected[[3, 0]], atol=1e-5)
    assert read == ["a"]


def test_processes_search_as_one_does(bilm: str) -> None:
    model = make_pipeline(ElmoVectorizer(bilm), LogisticRegression())
    scores = []
    for jobs in (1, 2):
        with parallel_config(backend="multiprocessing"):  # which need not import torch again
            search = GridSearchCV(model, GRID, cv=2, n_jobs=jobs).fit(TEXTS, LABELS)
        scores.append(search.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(*scores)


def test_a_pickle_has_the_digest_and_not_the_weights(bilm: str, other: Path, tmp_path) -> None:
    folder = tmp_path / "moved"
    shutil.copytree(bilm, folder)
    model = ElmoVectorizer(folder).fit(TEXTS)
    content = pickle.dumps(model)
    assert len(content) < 1000
    loaded = pickle.loads(content)
    np.testing.assert_array_equal(loaded.transform(TEXTS), model.transform(TEXTS))
    shutil.copytree(other, folder, dirs_exist_ok=True)
    with pytest.raises(DataError, match="another encoder is here now"):
        loaded.transform(TEXTS)


def test_parameters_are_those_of_scikit_learn(bilm: str) -> None:
    model = ElmoVectorizer(bilm, layers="top").fit(TEXTS)
    copied = clone(model).set_params(pool="max")
    assert copied.get_params() == {**model.get_params(), "pool": "max"}
    with pytest.raises(NotFittedError):
        copied.transform(TEXTS)
    with pytest.raises(NotFittedError):
        copied.get_feature_names_out()


@pytest.mark.parametrize(
    ("error", "message", "texts", "options"),
    [
        (TypeError, r"not a string; pass \[text\]", "a text", {}),
        (ValueError, "pass one of its columns", np.array([["a"]]), {}),
        (ValueError, "layers is 7", ["a"], {"layers": 7}),
        (ValueError, "pool is 'sum'", ["a"], {"pool": "sum"}),
    ],
)
def test_fit_refuses_wrong_texts_and_parameters(bilm, error, message, texts, options) -> None:
    with pytest.raises(error, match=message):
        ElmoVectorizer(bilm, **options).fit(texts)


def test_a_missing_value_is_named(bilm: str) -> None:
    with pytest.raises(TypeError, match="text 2 is nan"):
        ElmoVectorizer(bilm).fit_transform(["a", np.nan])


def test_without_scikit_learn_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectorizer, "_bases", ())
    for name in [name for name in sys.modules if name.partition(".")[0] == "sklearn"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(RunError, match=r"pip install 'elmo-framework\[sklearn\]'"):
        ElmoVectorizer()


class OfNumbers(ElmoVectorizer):
    """Reads rows of numbers as texts, because the checks of scikit-learn have no texts."""

    def fit(self, X, y=None):  # noqa: N803
        return super().fit(self._texts(X, reset=True))

    def transform(self, X):  # noqa: N803
        return super().transform(self._texts(X, reset=False))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags

    def _texts(self, rows, *, reset: bool):
        return [[f"{x:.2g}" for x in row] for row in validate_data(self, rows, reset=reset)]


def test_estimator_passes_the_checks_of_scikit_learn(bilm: str) -> None:
    model = OfNumbers(bilm)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checks = check_estimator(model, on_fail=None, on_skip=None)
    assert len(checks) > 30
    failed = {
        each["check_name"]: str(each["exception"]) for each in checks if each["status"] == "failed"
    }
    assert failed == {}
