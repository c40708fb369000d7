"""The constituency parser: trees, vectors of spans, decoding, and its configs of AllenNLP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from elmo_framework import components, load
from elmo_framework.commands.main import main
from elmo_framework.compat.allennlp.archive import AllenNlpArchive, import_archive
from elmo_framework.compat.allennlp.export import export_allennlp
from elmo_framework.compat.allennlp.parameter_names import names
from elmo_framework.compat.allennlp.translate import translate_allennlp
from elmo_framework.config.load import Config
from elmo_framework.config.parse import parse
from elmo_framework.data.reader import DatasetReader
from elmo_framework.data.tokenizer import WhitespaceTokenizer
from elmo_framework.data.vocabulary import PADDING, UNKNOWN, Vocabularies
from elmo_framework.errors import BuildError, ConfigError, DataError
from elmo_framework.experiment.check import check_config
from elmo_framework.model.model import Model
from elmo_framework.serve.served_run import InputError, ServedRun
from plugins.allennlp_heads.constituency_parser import ScoredSpan, without_crossing
from plugins.allennlp_heads.constituency_task import IGNORED, NO_LABEL, ConstituencyTask
from plugins.allennlp_heads.trees import (
    Constituent,
    ParsedSentence,
    as_brackets,
    chains,
    constituents_of,
    parse_tree,
    tree_lines,
)
from tests.experiment.task_check import check_task
from tests.unit.compat.test_archive import ARCHIVES, EXPECTED, outputs
from tests.unit.compat.test_export import check_equal
from tests.unit.tasks.classifiers import batch_of

TREES = ARCHIVES / "trees.mrg"
TASK, WORDS = ConstituencyTask(), WhitespaceTokenizer()
MODEL: dict[str, Any] = {
    "type": "constituency_parser",
    "embedder": {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 4}}},
    "encoder": {"type": "stacked_bidirectional_lstm", "hidden_size": 3, "num_layers": 1},
    "feedforward": {"num_layers": 1, "hidden_dims": 5, "activations": "tanh"},
}
SMALL: dict[str, Any] = {
    "train_data_path": str(TREES),
    "validation_data_path": str(TREES),
    "model.embedder.token_embedders.tokens": {"type": "embedding", "embedding_dim": 16},
    "model.encoder.hidden_size": 16,
    "model.encoder.recurrent_dropout_probability": 0.0,
    "model.encoder.layer_dropout_probability": 0.0,
    "model.feedforward.hidden_dims": 16,
    "model.feedforward.dropout": 0.0,
    "trainer.optimizer": {"type": "adam", "lr": 0.03},
    "data_loader.batch_size": 1,
    "trainer.num_epochs": 8,
    "trainer.patience": None,
}


def read(path: Path = TREES, **options: Any) -> list[ParsedSentence]:
    config = {"type": "ptb_trees", **options}
    return list(parse(DatasetReader, config, source="a.jsonnet").build().read(path))


def model(config: dict[str, Any] = MODEL) -> Any:
    torch.manual_seed(1)
    counts = Vocabularies(TASK.count(read()))
    return parse(Model, config, source="a.jsonnet").build(vocabularies=counts).eval()


def test_constituents_are_parents_before_children() -> None:
    words, tree = parse_tree("(TOP (S-1 (NP (DT The) (NN dog)) (VP (VBZ barks))))")
    assert words == ("The", "dog", "barks")
    assert tree.tags == ("DT", "NN", "VBZ")
    assert tree.constituents == ((0, 3, "S"), (0, 2, "NP"), (2, 3, "VP"))


def test_traces_leave_with_the_constituents_around_them() -> None:
    words, tree = parse_tree("( (S (NP-SBJ (-NONE- *)) (VP (VB Go) (NP=2 (-NONE- t)))))")
    assert words == ("Go",)
    assert tree.constituents == ((0, 1, "S"), (0, 1, "VP"))


def test_trees_may_have_several_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.mrg"
    path.write_text("( (S (NP (PRP It))\n\n  (VP (VBZ rains)) ))\n(S (VB Go))\n")
    assert [example.words for example in read(path)] == [("It", "rains"), ("Go",)]


def test_parentheses_of_words_may_be_converted(tmp_path: Path) -> None:
    path = tmp_path / "a.mrg"
    path.write_text("(NP (-LRB- -LRB-) (NN a) (-RRB- -RRB-))")
    (example,) = read(path)
    assert example.words == ("-LRB-", "a", "-RRB-")
    (example,) = read(path, convert_parentheses=True)
    assert example.words == ("(", "a", ")")
    assert as_brackets((), example) == "(TOP (-LRB- -LRB-) (NN a) (-RRB- -RRB-))"


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("(S (NN a))\n(S (NN a)", "not closed", 2),
        ("\n(S (NN a)) b", "'b' follows the tree", 2),
        ("(S (NP a b))", r"expected '\(TAG WORD\)' or '\(LABEL ...\)', found 'a'", 1),
        (")", "expected", 1),
    ],
)
def test_malformed_trees_have_their_line(
    text: str, message: str, line: int, tmp_path: Path
) -> None:
    path = tmp_path / "a.mrg"
    path.write_text(text)
    with pytest.raises(DataError, match=message) as caught:
        read(path)
    assert caught.value.line == line


def test_trees_are_written_as_they_were_read() -> None:
    for example in read():
        assert example.tree is not None
        spans = chains(example.tree.constituents)
        assert constituents_of(spans) == example.tree.constituents
        (line,) = tree_lines([(example.tree.constituents, example)])
        words, tree = parse_tree(line)
        assert words == example.words
        assert (tree.constituents, tree.tags) == (example.tree.constituents, example.tree.tags)


def test_spans_of_several_constituents_have_one_label() -> None:
    constituents = (Constituent(0, 2, "S"), Constituent(0, 2, "VP"), Constituent(1, 2, "NP"))
    assert chains(constituents) == {(0, 2): "S-VP", (1, 2): "NP"}


def test_spans_without_label_are_counted() -> None:
    labels = TASK.count(read())["labels"]
    assert labels.total() == sum(n * (n + 1) // 2 for n in (4, 8, 4, 2, 10))
    assert labels["S"] == 7
    assert TASK.count([])["labels"] == {NO_LABEL: 1}


def test_vectors_of_spans_are_differences_of_states() -> None:
    parser = model()
    batch = batch_of(parser, Vocabularies(TASK.count(read())), read()[:3])
    mask = batch.text.mask
    encoded = parser.encoder(parser.embedder(batch.text), mask).detach().numpy()
    start, end = (getattr(parser, f"{name}_sentinel").detach().numpy() for name in ("start", "end"))
    weight, bias = (
        each.detach().numpy() for each in parser.feedforward.linear_layers[0].parameters()
    )
    last, added = parser.projection.weight.detach().numpy(), parser.projection.bias.detach().numpy()
    logits = parser(batch).logits.detach().numpy()
    for row, words in enumerate(batch.text.words):
        forward, backward = encoded[row, :, :3], encoded[row, :, 3:]
        place = 0
        for first in range(mask.shape[1]):
            for final in range(first, mask.shape[1]):
                if final < len(words):
                    before = start if first == 0 else forward[first - 1]
                    after = end if final + 1 == len(words) else backward[final + 1]
                    span = np.concatenate([forward[final] - before, after - backward[first]])
                    assert np.isfinite(span).all()
                    # Without BLAS, which may set the flag of an invalid operation on padding.
                    hidden = np.tanh((weight * span).sum(axis=1) + bias)
                    expected = (last * hidden).sum(axis=1) + added
                    np.testing.assert_allclose(logits[row, place], expected, atol=1e-5)
                place += 1


def test_loss_is_the_mean_over_the_spans_of_a_sentence() -> None:
    parser, counts = model(), Vocabularies(TASK.count(read()))
    batch = batch_of(parser, counts, read())
    output = parser(batch)
    labels = counts.labels()
    for row, example in enumerate(read()):
        spans = chains(example.tree.constituents if example.tree else ())
        n, places = len(example.words), iter(range(output.logits.shape[1]))
        right = []
        for start in range(10):
            for end in range(start + 1, 11):
                place = next(places)
                if end <= n:
                    log_p = output.logits[row, place].log_softmax(0)
                    right.append(log_p[labels.id(spans.get((start, end), NO_LABEL))])
        torch.testing.assert_close(output.example_losses[row], -torch.stack(right).mean())
    torch.testing.assert_close(output.loss, output.example_losses.mean())


TAGGED = {**MODEL, "pos_tag_embedding": {"embedding_dim": 2}}


def test_parts_of_speech_are_behind_the_words() -> None:
    parser, counts = model(TAGGED), Vocabularies(TASK.count(read()))
    batch = batch_of(parser, counts, read()[:2])
    tags = [PADDING, UNKNOWN, *counts.counted("pos")]
    rows = [[tags.index(tag) for tag in example.tags] for example in read()[:2]]
    assert batch.tags.tolist() == [row + [0] * (8 - len(row)) for row in rows]
    read_by_encoder = []
    parser.encoder.register_forward_pre_hook(lambda _, inputs: read_by_encoder.append(inputs[0]))
    parser(batch)
    (vectors,) = read_by_encoder
    table = parser.pos_tag_embedding.weight.detach().numpy()
    np.testing.assert_array_equal(vectors[:, :, 4:].detach().numpy(), table[batch.tags])
    torch.testing.assert_close(vectors[:, :, :4], parser.embedder(batch.text))


def test_a_batch_equals_its_rows_with_parts_of_speech() -> None:
    parser, counts = model(TAGGED).double(), Vocabularies(TASK.count(read()))
    together = parser.predict(parser(batch := batch_of(parser, counts, read())), batch)
    for example, tree in zip(read(), together, strict=True):
        alone = batch_of(parser, counts, [example])
        assert parser.predict(parser(alone), alone) == [tree]


def test_a_part_of_speech_that_training_has_not_seen_is_unknown() -> None:
    words, tree = parse_tree("(NP (DT the) (NEW zebra))")
    batch = TASK.collate([ParsedSentence(words, tree)], Vocabularies(TASK.count(read())), ())
    assert batch.tags is not None
    assert batch.tags[0, 1] == 1


def test_inputs_have_their_parts_of_speech() -> None:
    task = model(TAGGED).task
    for tags in (["PRP", "VBZ"], "PRP VBZ"):
        example = task.example({"tokens": ["It", "rains"], "pos_tags": tags}, WORDS)
        assert (example.words, example.tags) == (("It", "rains"), ("PRP", "VBZ"))
        assert as_brackets((), example) == "(TOP (PRP It) (VBZ rains))"
        assert task.to_json((), example)["pos_tags"] == ["PRP", "VBZ"]
    assert "pos_tags" not in TASK.to_json((), TASK.example({"sentence": "It rains"}, WORDS))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"sentence": "It rains"}, r"'It rains' has none; .* \"pos_tags\": \[\"PRP\", \"VBZ\"\]}"),
        ({"tokens": ["It", "rains"], "pos_tags": ["PRP"]}, "has 1 of 2 parts of speech"),
        ({"tokens": ["It", "rains"], "pos_tags": []}, "has 0 of 2 parts of speech"),
        ({"tokens": ["It"], "pos_tags": 3}, "'pos_tags' is 3; expected a string or a list"),
        ({"pos_tags": ["PRP"]}, "expected one key with a text"),
    ],
)
def test_inputs_without_parts_of_speech_are_refused(values: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        model(TAGGED).task.example(values, WORDS)


def test_a_batch_without_parts_of_speech_is_refused() -> None:
    parser, counts = model(TAGGED), Vocabularies(TASK.count(read()))
    batch = batch_of(parser, counts, [*read(), ParsedSentence(("It", "rains"), None)])
    with pytest.raises(DataError, match="reads parts of speech, and 'It rains' has none"):
        parser(batch)


def test_an_empty_sentence_needs_no_parts_of_speech() -> None:
    parser, counts = model(TAGGED), Vocabularies(TASK.count(read()))
    batch = batch_of(parser, counts, [*read(), parser.task.example({"tokens": []}, WORDS)])
    assert parser.predict(parser(batch), batch)[-1] == ()


def test_unseen_labels_do_not_count_for_the_loss() -> None:
    words, tree = parse_tree("(X (NN a) (NN b))")
    batch = TASK.collate([ParsedSentence(words, tree)], Vocabularies(TASK.count([])), ())
    assert batch.labels is not None
    assert batch.labels.tolist() == [[0, IGNORED, 0]]


def test_the_better_of_two_crossing_spans_stays() -> None:
    first = ScoredSpan(0, 2, 1, 0.6, 0.3)
    second = ScoredSpan(1, 3, 1, 0.5, 0.1)
    assert without_crossing([first, second]) == [second]  # 0.5 + 0.3 > 0.6 + 0.1
    assert without_crossing([first, second._replace(of_none=0.4)]) == [first]
    inside = ScoredSpan(1, 2, 1, 0.1, 0.9)
    assert without_crossing([first, inside]) == [first, inside]


def test_random_spans_do_not_cross_after_decoding() -> None:
    generator = np.random.default_rng(1)
    for _ in range(50):
        spans = [
            ScoredSpan(start, end, 1, *generator.random(2))
            for start in range(6)
            for end in range(start + 1, 7)
            if generator.random() < 0.5
        ]
        left = without_crossing(spans)
        pairs = [(one, other) for one in left for other in left]
        assert not any(a.start < b.start < a.end < b.end for a, b in pairs)
        crossed = [a for a in spans if a not in left]
        assert all(any(_cross(a, b) for b in spans) for a in crossed)


def _cross(a: ScoredSpan, b: ScoredSpan) -> bool:
    return a.start < b.start < a.end < b.end or b.start < a.start < b.end < a.end


def test_an_encoder_of_one_odd_direction_is_refused() -> None:
    with pytest.raises(BuildError, match="5 dimensions"):
        model({**MODEL, "encoder": {"type": "lstm", "hidden_size": 5}})


def test_parser_trains_scores_and_predicts(tmp_path: Path) -> None:
    config = "plugins/allennlp_heads/parser_baseline.jsonnet"
    run = check_task(config, tmp_path / "run", SMALL, inputs=["The dog barks ."])
    scores = run.evaluate(TREES)
    assert scores["evalb_f1_measure"] > 0.6
    assert {"evalb_precision", "evalb_recall", "evalb_exact_match"} <= scores.keys()


def test_parser_of_tagged_words_predicts_for_trees_and_json(tmp_path: Path) -> None:
    changes = {**SMALL, "model.pos_tag_embedding": {"embedding_dim": 4}, "trainer.num_epochs": 2}
    config = "plugins/allennlp_heads/parser_baseline.jsonnet"
    tagged = {"tokens": ["It", "rains"], "pos_tags": ["PRP", "VBZ"]}
    run = check_task(config, tmp_path / "run", changes, inputs=[tagged])
    assert (tmp_path / "run/vocabulary/pos.jsonl").is_file()
    output = tmp_path / "out.jsonl"
    assert main(["predict", str(tmp_path / "run"), str(TREES), "--output-file", str(output)]) == 0
    assert len(output.read_text().splitlines()) == 5
    served = ServedRun("parser", run, max_words=100, batch_size=8)
    served.warm_up()
    with pytest.raises(InputError, match="reads parts of speech, and 'It rains' has none"):
        served.read([tagged, "It rains"])


OLD: dict[str, Any] = {
    "dataset_reader": {
        "type": "ptb_trees",
        "use_pos_tags": True,
        "token_indexers": {"tokens": {"type": "single_id"}},
    },
    "train_data_path": str(TREES),
    "validation_data_path": str(TREES),
    "model": {
        "type": "constituency_parser",
        "text_field_embedder": {"tokens": {"type": "embedding", "embedding_dim": 6}},
        "encoder": {
            "type": "stacked_bidirectional_lstm",
            "input_size": 6,
            "hidden_size": 4,
            "num_layers": 2,
        },
        "span_extractor": {"type": "bidirectional_endpoint", "input_dim": 8},
        "feedforward": {
            "input_dim": 8,
            "num_layers": 1,
            "hidden_dims": 5,
            "activations": "relu",
            "dropout": 0.1,
        },
        "initializer": [["tag_projection_layer.*weight", {"type": "xavier_uniform"}]],
    },
    "iterator": {"type": "bucket", "sorting_keys": [["tokens", "num_tokens"]], "batch_size": 4},
    "trainer": {"num_epochs": 1, "cuda_device": -1, "validation_metric": "+evalb_f1_measure"},
}


def ours(**changes: Any) -> dict[str, Any]:
    raw = {**OLD, "model": {**OLD["model"], **changes}}
    translation = translate_allennlp(raw, "old.jsonnet")
    assert translation is not None
    return translation.raw


def test_translated_config_has_no_problems() -> None:
    components.load()
    assert not check_config(Config(ours(), "old.jsonnet", "")).problems


def test_each_parameter_has_a_name_in_allennlp() -> None:
    raw = ours()["model"]
    named = {ours for _, ours in names(raw) if ours}
    raw.pop("initializer")
    assert named == {name for name, _ in model(raw).named_parameters()}


TAGS: dict[str, Any] = {"embedding_dim": 3, "vocab_namespace": "pos"}
WITH_TAGS: dict[str, Any] = {
    "pos_tag_embedding": TAGS,
    "encoder": {**OLD["model"]["encoder"], "input_size": 9},
    "initializer": [["pos_tag_embedding.*", {"type": "normal"}]],
}


def test_vectors_of_parts_of_speech_are_translated() -> None:
    components.load()
    raw = ours(**WITH_TAGS)
    assert raw["model"]["pos_tag_embedding"] == {"embedding_dim": 3}
    assert not check_config(Config(raw, "old.jsonnet", "")).problems
    named = {ours for _, ours in names(raw["model"]) if ours}
    assert raw["model"].pop("initializer")[-1] == ["pos_tag_embedding.*", {"type": "normal"}]
    assert named == {name for name, _ in model(raw["model"]).named_parameters()}


@pytest.mark.parametrize(
    ("embedding", "reader", "path"),
    [
        ({"embedding_dim": 3}, {}, "model.pos_tag_embedding.vocab_namespace"),
        ({**TAGS, "vocab_namespace": "x"}, {}, "model.pos_tag_embedding.vocab_namespace"),
        ({**TAGS, "trainable": False}, {}, "model.pos_tag_embedding.trainable"),
        ({**TAGS, "projection_dim": 3}, {}, "model.pos_tag_embedding.projection_dim"),
        (TAGS, {"use_pos_tags": False}, "dataset_reader.use_pos_tags"),
        (TAGS, {"pos_label_namespace": "x"}, "dataset_reader.pos_label_namespace"),
    ],
)
def test_other_parts_of_speech_are_refused(
    embedding: dict[str, Any], reader: dict[str, Any], path: str
) -> None:
    old = {**OLD, "dataset_reader": {**OLD["dataset_reader"], **reader}}
    old["model"] = {**OLD["model"], "pos_tag_embedding": embedding}
    with pytest.raises(ConfigError) as caught:
        translate_allennlp(old, "old.jsonnet")
    assert [problem.path for problem in caught.value.problems] == [path]


def test_a_parser_of_words_needs_no_parts_of_speech() -> None:
    reader = {**OLD["dataset_reader"], "use_pos_tags": False, "pos_label_namespace": "x"}
    translation = translate_allennlp({**OLD, "dataset_reader": reader}, "old.jsonnet")
    assert translation is not None
    assert translation.raw["dataset_reader"] == {"type": "ptb_trees"}


def test_rare_parts_of_speech_are_left_out_as_in_allennlp() -> None:
    limits = {"min_count": {"pos": 2}}
    translation = translate_allennlp({**OLD, "vocabulary": limits}, "old.jsonnet")
    assert translation is not None
    assert translation.raw["vocabulary"] == limits


@pytest.mark.parametrize(
    ("extractor", "key"),
    [
        ({"type": "endpoint", "input_dim": 8}, "type"),
        ({"type": "bidirectional_endpoint", "forward_combination": "x,y"}, "forward_combination"),
        ({"type": "bidirectional_endpoint", "use_sentinels": False}, "use_sentinels"),
        (
            {"type": "bidirectional_endpoint", "span_width_embedding_dim": 4},
            "span_width_embedding_dim",
        ),
    ],
)
def test_other_span_extractors_are_refused(extractor: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ours(span_extractor=extractor)
    (problem,) = caught.value.problems
    assert problem.path == f"model.span_extractor.{key}"


KINDS = pytest.mark.parametrize("kind", ["constituency_parser", "constituency_parser_tags"])


@KINDS
def test_imported_parser_has_the_trees_of_allennlp(kind: str, tmp_path: Path) -> None:
    archive, run = ARCHIVES / f"{kind}.tar.gz", tmp_path / "run"
    flags = ["--include-package", "plugins.allennlp_heads"]
    assert main(["import", str(archive), "-s", str(run), *flags]) == 0
    answers, expected = outputs(load(run), TREES), EXPECTED[kind]
    assert len(answers) == len(expected) == 5
    for (example, output, prediction), each in zip(answers, expected, strict=True):
        probabilities = output.logits[0].softmax(-1)
        np.testing.assert_allclose(probabilities, each["class_probabilities"], atol=1e-5)
        _, tree = parse_tree(each["trees"])
        labeled = [span for span in tree.constituents if span.label not in ("NO", "LABEL")]
        assert list(prediction) == labeled, example.words


@KINDS
def test_exported_model_is_imported_bit_for_bit(kind: str, tmp_path: Path) -> None:
    first, second, archive = tmp_path / "a", tmp_path / "b", tmp_path / "model.tar.gz"
    import_archive(ARCHIVES / f"{kind}.tar.gz", first)
    export_allennlp(first, archive)
    import_archive(archive, second)
    check_equal(first, second, TREES)
    theirs, ours = map(AllenNlpArchive.read, (ARCHIVES / f"{kind}.tar.gz", archive))
    # The parts of speech that a model does not read are not written.
    has_tags = kind.endswith("_tags")
    assert {**ours.vocabulary, "pos": theirs.vocabulary["pos"]} == theirs.vocabulary
    assert ("pos" in ours.vocabulary) is has_tags
    embedding = ours.config["model"].get("pos_tag_embedding")
    assert embedding == ({"embedding_dim": 4, "vocab_namespace": "pos"} if has_tags else None)
