"""Models as ONNX compute what PyTorch computes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

from elmo_framework.bilm.files.load import bilm_files, read_bilm
from elmo_framework.commands.main import main
from elmo_framework.config.parse import parse
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import RunError
from elmo_framework.model.head import Head
from elmo_framework.model.model import Model as TaskModel
from elmo_framework.onnx_export import elmo_onnx, export
from elmo_framework.onnx_export.elmo_onnx import Model
from elmo_framework.onnx_export.export import export_head, export_layers
from elmo_framework.onnx_export.graph import Graph
from elmo_framework.tasks.classification.task import ClassifiedText, TextClassificationTask
from elmo_framework.tasks.entailment.task import EntailmentTask, SentencePair
from elmo_framework.tasks.tagging.task import TaggedSentence, TaggingTask
from elmo_framework.training.evaluator import inference
from tests.numpy_bilm import NumpyBiLm, random_weights, small_options

SENTENCES = [
    ["Anna", "lives", "in", "Lisbon", "."],
    ["."],
    ["a", "word", "that", "is", "incomprehensibilities-long", "<S>", "a", "ßtraße", "\udc80"],
]
TAGS = [
    ["U-PER", "O", "O", "U-LOC", "O"],
    ["O"],
    ["O", "B-MISC", "I-MISC", "L-MISC", "O", "O", "O", "O", "U-LOC"],
]
TAGGED = [
    TaggedSentence(tuple(words), tuple(tags)) for words, tags in zip(SENTENCES, TAGS, strict=True)
]
TEXTS = [ClassifiedText(tuple(words), label) for words, label in zip(SENTENCES, "abc", strict=True)]
PAIRS = [
    SentencePair(tuple(first), tuple(second), label)
    for first, second, label in zip(SENTENCES, SENTENCES[::-1], "abc", strict=True)
]
LSTM = {"type": "lstm", "hidden_size": 6, "bidirectional": True}
LAYER = {"num_layers": 1, "hidden_dims": 7, "activations": "tanh"}
WORDS = {"type": "embedding", "embedding_dim": 5, "lowercase": True}
CASED = {
    "type": "embedding",
    "embedding_dim": 3,
    "case_fallback": True,
    "min_count": 2,
    "projection_dim": 4,
}
CHARACTERS = {
    "type": "character_encoding",
    "embedding": {"embedding_dim": 4},
    "encoder": {"type": "cnn", "num_filters": 5, "ngram_filter_sizes": [2, 9], "output_dim": 6},
}
CHARACTER_LSTM = {**CHARACTERS, "encoder": {"type": "lstm", "hidden_size": 3}}
ELMO = {"type": "elmo_token_embedder", "cache": "none"}


@pytest.fixture(scope="module")
def numpy_bilm(tmp_path_factory: pytest.TempPathFactory) -> tuple[NumpyBiLm, Path]:
    """A biLM whose clips are reached, and its folder."""
    options = small_options()
    bilm = NumpyBiLm(options, random_weights(options, scale=0.8))
    folder = tmp_path_factory.mktemp("bilm")
    bilm.save(folder)
    return bilm, folder


def embedders(**configs: dict[str, Any]) -> dict[str, Any]:
    return {"embedder": {"token_embedders": configs}}


TAGGER = {"type": "simple_tagger", **embedders(elmo=ELMO)}
MODELS: dict[str, tuple[Any, list[Any], dict[str, Any]]] = {
    "tagger": (TaggingTask(), TAGGED, TAGGER),
    "crf tagger": (
        TaggingTask(),
        TAGGED,
        {
            "type": "crf_tagger",
            **embedders(elmo=ELMO, tokens=WORDS, characters=CHARACTERS),
            "encoder": {**LSTM, "num_layers": 2},
            "output_embedder": {**ELMO, "projection_dim": 3, "mix": {"type": "layer", "index": 1}},
            "output_encoder": {"type": "gru", "hidden_size": 4},
            "include_start_end_transitions": True,
        },
    ),
    "crf without constraints": (
        TaggingTask(),
        TAGGED,
        {
            "type": "crf_tagger",
            **embedders(tokens=CASED, characters=CHARACTER_LSTM),
            "encoder": {
                "type": "compose",
                "encoders": [
                    {"type": "gru", "hidden_size": 4, "bidirectional": True},
                    {"type": "feedforward", "feedforward": LAYER},
                ],
            },
            "constrain_transitions": False,
        },
    ),
    "bcn": (
        TextClassificationTask(),
        TEXTS,
        {
            "type": "bcn",
            **embedders(elmo={**ELMO, "mix": {"type": "scalar_mix", "layer_norm": True}}),
            "pre_encode_feedforward": LAYER,
            "encoder": LSTM,
            "integrator": LSTM,
            "output_embedder": {**ELMO, "mix": "average"},
            "output_layer": {"type": "maxout", "output_dims": [8], "pool_sizes": 2},
        },
    ),
    **{
        f"classifier, {pooler if isinstance(pooler, str) else pooler['type']}": (
            TextClassificationTask(),
            TEXTS,
            {
                "type": "basic_classifier",
                **embedders(tokens=WORDS),
                "pooler": pooler,
                "feedforward": {**LAYER, "activations": "relu"},
            },
        )
        for pooler in (
            "max",
            "self_attentive",
            {"type": "lstm", "hidden_size": 3, "bidirectional": True},
            {"type": "gru", "hidden_size": 3, "bidirectional": True},
            {
                "type": "cnn",
                "num_filters": 3,
                "ngram_filter_sizes": [1, 4],
                "short_sequences": "zero",
            },
            {"type": "bag_of_embeddings", "averaged": True},
        )
    },
    "pairs": (
        EntailmentTask(),
        PAIRS,
        {
            "type": "esim",
            **embedders(elmo=ELMO, tokens=WORDS),
            "encoder": LSTM,
            "projection_feedforward": LAYER,
            "inference_encoder": LSTM,
            "output_feedforward": LAYER,
        },
    ),
}


def with_bilm(config: Any, folder: Path) -> Any:
    """Name the biLM wherever a config reads one."""
    if isinstance(config, list):
        return [with_bilm(item, folder) for item in config]
    if not isinstance(config, dict):
        return config
    found = {"bilm": str(folder)} if config.get("type") == ELMO["type"] else {}
    return {**{key: with_bilm(value, folder) for key, value in config.items()}, **found}


def build(name: str, folder: Path) -> tuple[Head[Any], Vocabularies, list[Any]]:
    task, examples, config = MODELS[name]
    vocabularies = Vocabularies(
        task.count(examples[:2]) | {"labels": task.count(examples)["labels"]}
    )
    torch.manual_seed(2)
    head = parse(TaskModel, with_bilm(config, folder), source="a.jsonnet").build(
        vocabularies=vocabularies
    )
    assert isinstance(head, Head)
    for parameter in head.parameters():  # far from zero, so that a wrong order is seen
        torch.nn.init.normal_(parameter, std=0.5)
    return head.eval(), vocabularies, examples


def outputs(head: Head[Any], vocabularies: Vocabularies, examples: list[Any]) -> Any:
    batch = head.collator(vocabularies)(examples)
    with inference(head):
        output = head(batch)
        return output.logits.numpy(), head.predict(output, batch)


def words_of(example: Any) -> Any:
    if isinstance(example, SentencePair):
        return [example.premise, example.hypothesis]
    return example.words


@pytest.mark.parametrize("name", MODELS)
def test_logits_and_labels_equal_those_of_pytorch(
    numpy_bilm: tuple[NumpyBiLm, Path], tmp_path: Path, name: str
) -> None:
    head, vocabularies, examples = build(name, numpy_bilm[1])
    export_head(head, tmp_path)
    onnx.checker.check_model(str(tmp_path / "model.onnx"), full_check=True)
    model = Model(tmp_path, threads=1)
    logits, expected = outputs(head, vocabularies, examples)
    sentences = [words_of(example) for example in examples]
    flat = [*map(list, zip(*sentences, strict=True))] if name == "pairs" else [sentences]
    computed = model.run([words for group in flat for words in group])["logits"]
    predicted = model.predict(sentences)
    if isinstance(examples[0], TaggedSentence):
        assert predicted == [list(tags) for tags in expected]
        mask = np.arange(logits.shape[1]) < np.array([[len(words)] for words in sentences])
        np.testing.assert_allclose(computed[mask], logits[mask], rtol=0, atol=2e-5)
        # One by one, and so with other padding.
        assert [model.predict([words])[0] for words in sentences] == predicted
        assert model.predict([[]]) == [[]]
    else:
        np.testing.assert_allclose(computed, logits, rtol=0, atol=2e-5)
        assert [label for label, _ in predicted] == [each.label for each in expected]
        for (_, probabilities), each in zip(predicted, expected, strict=True):
            assert probabilities == pytest.approx(dict(each.probabilities), abs=1e-5)


@pytest.mark.parametrize("name", ["classifier, max", "pairs"])
def test_probabilities_are_those_of_the_temperature(
    numpy_bilm: tuple[NumpyBiLm, Path], tmp_path: Path, name: str
) -> None:
    head, vocabularies, examples = build(name, numpy_bilm[1])
    head.temperature = 2.5
    export_head(head, tmp_path)
    model = Model(tmp_path, threads=1)
    assert model.is_calibrated
    predicted = model.predict([words_of(example) for example in examples])
    for (_, probabilities), each in zip(
        predicted, outputs(head, vocabularies, examples)[1], strict=True
    ):
        assert each.is_calibrated
        assert probabilities == pytest.approx(dict(each.probabilities), abs=1e-5)


def test_layers_equal_the_numpy_reference(
    numpy_bilm: tuple[NumpyBiLm, Path], tmp_path: Path
) -> None:
    bilm, folder = numpy_bilm
    command = ["export", str(folder), "--format", "onnx", "--output-dir", str(tmp_path)]
    assert main(command) == 0
    assert main(command) == 2  # the files are there
    model = Model(tmp_path, threads=1)
    for words, layers in zip(SENTENCES, model.predict(SENTENCES), strict=True):
        np.testing.assert_allclose(layers, bilm.layers(words)[:, 1:-1], rtol=0, atol=1e-5)


def test_int8_is_smaller_and_close(tmp_path: Path) -> None:
    bilm = NumpyBiLm.random(scale=0.2, dim=64, projection_dim=32)
    read = read_bilm(bilm_files(bilm.save(tmp_path / "bilm")))
    export_layers(read, tmp_path / "float32")
    export_layers(read, tmp_path / "int8", is_int8=True)
    sizes = [(tmp_path / name / "model.onnx").stat().st_size for name in ("int8", "float32")]
    assert sizes[0] < 0.4 * sizes[1]
    rounded, exact = (
        np.concatenate(Model(tmp_path / name, threads=1).predict(SENTENCES), axis=1)
        for name in ("int8", "float32")
    )
    assert 0 < np.abs(rounded - exact).max() < 0.05


def test_pruned_words_share_the_unknown_vector(
    numpy_bilm: tuple[NumpyBiLm, Path], tmp_path: Path
) -> None:
    head, _, _ = build("classifier, max", numpy_bilm[1])
    export_head(head, tmp_path, words=["lives"])
    model = Model(tmp_path, threads=1)
    lives, anna, unknown = (model.run([[word]])["logits"] for word in ("lives", "Anna", "unseen"))
    assert np.array_equal(anna, unknown)
    assert not np.array_equal(lives, unknown)
    expected = outputs(head, *_read_alone(head, "lives"))[0]
    np.testing.assert_allclose(lives, expected, rtol=0, atol=1e-5)


def _read_alone(head: Head[Any], word: str) -> tuple[Vocabularies, list[Any]]:
    return Vocabularies({"labels": {}, "words": {}}), [ClassifiedText((word,), None)]  # type: ignore[arg-type]


def test_it_runs_without_the_package(numpy_bilm: tuple[NumpyBiLm, Path], tmp_path: Path) -> None:
    head, _, _ = build("tagger", numpy_bilm[1])
    export_head(head, tmp_path)
    expected = Model(tmp_path).predict([["Anna", "lives"]])
    blocked = "import sys; sys.modules.update(dict.fromkeys(['torch', 'elmo_framework', 'onnx']))"
    program = f"{blocked}; import elmo_onnx; elmo_onnx.main()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        input="Anna lives\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert [json.loads(line) for line in done.stdout.splitlines()] == expected


def test_kept_words_are_looked_up_as_the_model_does(
    numpy_bilm: tuple[NumpyBiLm, Path], tmp_path: Path
) -> None:
    head, _, _ = build("classifier, max", numpy_bilm[1])
    export_head(head, tmp_path / "all")
    export_head(head, tmp_path / "some", words=["ANNA", "."])  # lives, Lisbon ... are removed
    whole, pruned = (Model(tmp_path / folder, threads=1) for folder in ("all", "some"))
    for word in ("ANNA", "Anna", "."):
        np.testing.assert_array_equal(*(each.run([[word]])["logits"] for each in (whole, pruned)))
    about = json.loads((tmp_path / "some/model.json").read_text())
    assert sorted(about["tables"]["words"]["words"]) == [".", "anna"]


@pytest.fixture
def of_pairs(numpy_bilm: tuple[NumpyBiLm, Path], tmp_path: Path) -> Path:
    """The folder of a classifier of pairs as ONNX."""
    export_head(build("pairs", numpy_bilm[1])[0], tmp_path)
    return tmp_path


def test_inputs_that_are_no_pairs_are_refused(of_pairs: Path) -> None:
    model = Model(of_pairs, threads=1)
    good = [["a"], ["b"]]
    for wrong, number in (([["a"]], 1), ([["a"], ["b"], ["c"]], 3)):
        with pytest.raises(ValueError, match=f"input 2: expected two sentences, found {number}"):
            model.predict([good, wrong])
    for wrong_text in ("a b", ["a", "b"], [["a"], "b"]):
        with pytest.raises(TypeError, match="input 2: expected a list of words, found '"):
            model.predict([good, wrong_text])


def test_a_text_in_place_of_words_is_refused(
    numpy_bilm: tuple[NumpyBiLm, Path], tmp_path: Path
) -> None:
    export_layers(read_bilm(bilm_files(numpy_bilm[1])), tmp_path)
    with pytest.raises(TypeError, match="input 1: expected a list of words, found 'Anna lives'"):
        Model(tmp_path).predict(["Anna lives"])


@pytest.mark.parametrize(("line", "number"), [("d e f", 1), ("a\tb\tc", 3)])
def test_a_wrong_line_is_one_line_of_message(of_pairs: Path, line: str, number: int) -> None:
    done = subprocess.run(
        [sys.executable, of_pairs / "elmo_onnx.py"],
        input=f"a b\tc\n{line}\n",
        capture_output=True,
        text=True,
        check=False,
    )
    message = f"error: line 2: expected two sentences with a tab between them, found {number}\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


def test_a_table_of_vectors_is_stored_once() -> None:
    graph = Graph()
    graph.table(torch.ones(3, 2))
    assert [each.dims for each in graph._weights] == [[3, 2]]


def test_a_part_without_onnx_form_is_refused(
    numpy_bilm: tuple[NumpyBiLm, Path], tmp_path: Path
) -> None:
    changes = {"encoder": {"type": "alternating_lstm", "hidden_size": 3, "num_layers": 1}}
    MODELS["odd"] = (*MODELS["tagger"][:2], {**TAGGER, **changes})
    head, _, _ = build("odd", numpy_bilm[1])
    with pytest.raises(RunError, match="no ONNX form of AlternatingLstm"):
        export_head(head, tmp_path)
    assert not any(tmp_path.iterdir())


def test_characters_of_a_vocabulary_have_no_onnx_form(
    numpy_bilm: tuple[NumpyBiLm, Path], tmp_path: Path
) -> None:
    model = {**TAGGER, **embedders(characters={**CHARACTERS, "characters": "vocabulary"})}
    MODELS["characters"] = (*MODELS["tagger"][:2], model)
    head, _, _ = build("characters", numpy_bilm[1])
    with pytest.raises(RunError, match="no ONNX form of CharacterIndexer"):
        export_head(head, tmp_path)


def test_a_newer_format_is_refused(numpy_bilm: tuple[NumpyBiLm, Path], tmp_path: Path) -> None:
    assert elmo_onnx.FORMAT == export.FORMAT
    export_layers(read_bilm(bilm_files(numpy_bilm[1])), tmp_path)
    about = json.loads((tmp_path / "model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps({**about, "format": export.FORMAT + 1}))
    with pytest.raises(ValueError, match=r"export of format 2, .* up to 1: use the one next"):
        Model(tmp_path)


def test_a_description_without_a_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text('{"place": "mini", "digest": "0"}')
    with pytest.raises(ValueError, match=r"model\.json: not of an ONNX export"):
        Model(tmp_path)


def test_options_of_a_run_are_refused_for_a_bilm(tmp_path: Path) -> None:
    for options, flag in (({"words": []}, "--vocabulary"), ({"bilm": tmp_path}, "--bilm")):
        with pytest.raises(RunError, match=f"{flag} is for a run .*; mini is a biLM"):
            export.export_onnx("mini", tmp_path / "out", **options)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--dtype", "int8"], "--dtype int8 is not for --format bilm"),
        (["--format", "onnx", "--dtype", "float16"], "float16 is not for --format onnx"),
        (["--vocabulary", "words.txt"], "--vocabulary is for --format onnx"),
    ],
)
def test_options_of_the_other_format_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], message: str
) -> None:
    assert main(["export", "mini", "--output-dir", str(tmp_path / "out"), *flags]) == 2
    assert message in capsys.readouterr().err
