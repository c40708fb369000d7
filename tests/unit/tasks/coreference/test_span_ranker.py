from collections import Counter
from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from elmo_framework import components
from elmo_framework.config.parse import parse
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import BuildError
from elmo_framework.model.model import Model
from elmo_framework.tasks.coreference.example import CoreferenceBatch, Document, merged
from elmo_framework.tasks.coreference.mentions import Spans, Words
from elmo_framework.tasks.coreference.reader import ConllCoreferenceReader
from elmo_framework.tasks.coreference.span_ranker import SpanRanker
from elmo_framework.tasks.coreference.task import CoreferenceTask
from tests.numpy_bilm import NumpyBiLm
from tests.unit.tasks.carried import carrying_elmo, check_order_of_reading
from tests.unit.tasks.learning import fit

components.load()
FIXTURES = Path(__file__).parents[3] / "fixtures/coreference"
WORDS = {"type": "embedding", "embedding_dim": 6}
FEEDFORWARD = {"num_layers": 2, "hidden_dims": [7, 5], "activations": "relu"}
CONFIG: dict[str, Any] = {
    "type": "coref",
    "embedder": {"token_embedders": {"tokens": WORDS}},
    "encoder": {"type": "lstm", "hidden_size": 5, "bidirectional": True},
    "mention_feedforward": FEEDFORWARD,
    "antecedent_feedforward": FEEDFORWARD,
    "feature_size": 4,
    "max_span_width": 5,
    "spans_per_word": 0.8,
    "max_antecedents": 6,
    "lexical_dropout": 0.0,
    "dropout": 0.0,
}
EXAMPLES = list(ConllCoreferenceReader().read(FIXTURES / "train.conll"))
COUNTS = Vocabularies(CoreferenceTask().count(EXAMPLES))


def ranker(**options: Any) -> SpanRanker:
    torch.manual_seed(1)
    lazy = parse(Model, {**CONFIG, **options}, source="a.jsonnet")
    built = lazy.build(vocabularies=COUNTS)
    assert isinstance(built, SpanRanker)
    return built


def batch_of(model: SpanRanker, examples: Sequence[Document] = EXAMPLES) -> CoreferenceBatch:
    batch = model.task.collator(COUNTS, model.indexers)(examples)
    assert isinstance(batch, CoreferenceBatch)
    return batch


def test_model_fits_its_training_data():
    model = ranker(spans_per_word=3.0, max_span_width=2, max_antecedents=60)
    batch = batch_of(model, EXAMPLES[1:])
    fit(model, batch, lr=0.015, num_steps=110)

    output = model(batch)

    assert output.loss.item() < 0.5
    assert [found.clusters for found in model.predict(output, batch)] == [
        tuple(cluster for cluster in example.clusters if len(cluster) > 1)
        for example in EXAMPLES[1:]
    ]


def test_the_loss_is_the_sum_over_the_documents():
    model = ranker()

    output = model(batch_of(model))

    assert output.example_losses.shape == (3,)
    torch.testing.assert_close(output.loss, output.example_losses.sum())
    assert (output.example_losses > 0).all()


@pytest.mark.parametrize("reads", ["sentence", "document"])
def test_a_batch_equals_its_documents_one_by_one(reads: str):
    model = ranker(encoder_reads=reads, context_embedder=WORDS, output_embedder=WORDS).eval()
    batch = batch_of(model)
    together = model(batch)

    for row, example in enumerate(EXAMPLES):
        own = batch_of(model, [example])
        alone = model(own)
        torch.testing.assert_close(alone.loss, together.example_losses[row])
        torch.testing.assert_close(alone.rankings[0].choices, together.rankings[row].choices)
        assert model.predict(alone, own) == model.predict(together, batch)[row : row + 1]


def test_padding_changes_nothing():
    model = ranker().eval()
    longer = Document((("word",) * 30,), None)

    alone = model(batch_of(model, EXAMPLES[:1])).rankings[0]
    padded = model(batch_of(model, [EXAMPLES[0], longer])).rankings[0]

    assert padded.spans.tolist() == alone.spans.tolist()
    torch.testing.assert_close(padded.choices, alone.choices)


def test_encoder_can_read_the_whole_document():
    by_sentence, whole = ranker().eval(), ranker(encoder_reads="document").eval()
    batch, one = batch_of(whole), batch_of(whole, [Document((("Rain", "fell", "."),), None)])

    assert not torch.equal(by_sentence(batch).example_losses, whole(batch).example_losses)
    torch.testing.assert_close(by_sentence(one).rankings[0].choices, whole(one).rankings[0].choices)


def test_gradients_reach_every_parameter():
    lowercase, rare = {**WORDS, "lowercase": True}, {**WORDS, "min_count": 2}
    model = ranker(output_embedder=lowercase, context_embedder=rare)

    model(batch_of(model)).loss.backward()

    assert {name for name, value in model.named_parameters() if not value.grad.any()} == set()


def test_unlabeled_batch_has_predictions_without_loss():
    model = ranker().eval()
    batch = batch_of(model, [Document(EXAMPLES[0].sentences, None), Document(((),), None)])

    output = model(batch)
    predictions = model.predict(output, batch)

    assert output.loss is output.example_losses is None
    assert len(predictions[0].spans) == int(0.8 * len(EXAMPLES[0].words))
    assert predictions[1] == ((), ())


@pytest.mark.parametrize("reads", ["sentence", "document"])
def test_number_of_spans_of_tiny_documents(reads: str):
    model = ranker(encoder_reads=reads).eval()
    one, none = (batch_of(model, [Document((words,), ())]) for words in (("Anna",), ()))

    assert model.predict(model(one), one) == [((), ((0, 0),))]
    assert model.predict(model(none), none) == [((), ())]


def naive_vector(
    model: SpanRanker, words: Words, start: int, width: int, attention_reads: str = "encoder"
) -> Tensor:
    """The vector of a span, as the equations have it."""
    ranking, end = model.mentions, start + width
    inside = slice(start, end + 1)
    attended = words.encoded if attention_reads == "encoder" else words.embedded
    attention = ranking.attention(attended[inside]).squeeze(1).softmax(0)
    head = attention @ words.embedded[inside]
    feature = ranking.width_embedding.weight[width]
    return torch.cat([words.encoded[start], words.encoded[end], head, feature])


def random_words(model: SpanRanker, sentences: list[int]) -> Words:
    embedded = torch.randn(len(sentences), model.embedder.output_dim)
    encoded = torch.randn(len(sentences), model.encoder.output_dim)
    lengths = list(Counter(sentences).values())
    return Words(embedded, encoded, torch.tensor(sentences), lengths)


@pytest.mark.parametrize("attention_reads", ["encoder", "embedder"])
def test_span_scores_equal_those_of_explicit_vectors(attention_reads: str):
    model = ranker(attention_reads=attention_reads)
    words = random_words(model, [0] * 7 + [1] * 4 + [2])

    spans = model.mentions(words)

    assert len(spans.scores) == int(0.8 * 12)
    for number, (start, width) in enumerate(
        zip(spans.starts.tolist(), spans.widths.tolist(), strict=True)
    ):
        vector = naive_vector(model, words, start, width, attention_reads)
        torch.testing.assert_close(spans.vectors[number], vector)
        score = model.mentions.score(model.mentions.feedforward(vector))
        torch.testing.assert_close(spans.scores[number], score.squeeze())


def test_crossing_spans_are_the_best_of_all():
    options = {"max_span_width": 4, "spans_per_word": 1.5}
    crossing, without = ranker(crossing_spans=True, **options), ranker(**options)
    words = random_words(crossing, [0] * 9 + [1] * 3)

    def chosen(model: SpanRanker) -> list[tuple[int, int]]:
        spans = model.mentions(words)
        return list(zip(spans.starts.tolist(), spans.widths.tolist(), strict=True))

    scores = {}
    for start, width in ((s, w) for s in range(12) for w in range(4)):
        if start + width < 12 and (start < 9) == (start + width < 9):
            vector = naive_vector(crossing, words, start, width)
            score = crossing.mentions.score(crossing.mentions.feedforward(vector))
            scores[start, width] = score.item()
    assert chosen(crossing) == sorted(sorted(scores, key=lambda span: -scores[span])[:18])
    assert chosen(crossing) != chosen(without)


def test_of_equal_scores_the_first_is_better():
    model = ranker(spans_per_word=1.0)
    nn.init.zeros_(model.mentions.score.weight)

    spans = model.mentions(random_words(model, [0] * 3 + [1] * 2))

    chosen = list(zip(spans.starts.tolist(), spans.widths.tolist(), strict=True))
    assert chosen == [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0)]  # (1, 1) would cross (0, 1)


@pytest.mark.parametrize(("spans_per_word", "expected"), [(0.5, 6), (0.01, 1), (9.0, 17)])
def test_spans_per_word_limits_the_spans(spans_per_word: float, expected: int):
    """Of three words no more than two are a span, so that none of the 17 crosses another."""
    model = ranker(spans_per_word=spans_per_word, max_span_width=2)
    words = random_words(model, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6])

    assert len(model.mentions(words).starts) == expected


def test_max_span_width_limits_spans():
    model = ranker(spans_per_word=9.0, max_span_width=3)

    spans = model.mentions(random_words(model, [0] * 6 + [1] * 2))

    assert set(spans.widths.tolist()) == {0, 1, 2}
    assert {(6, 0), (6, 1), (7, 0)} <= set(
        zip(spans.starts.tolist(), spans.widths.tolist(), strict=True)
    )
    assert model.mentions.width_embedding.weight.shape[0] == 3


def test_ranked_spans_are_word_positions():
    model = ranker(spans_per_word=9.0, max_span_width=3).eval()
    document = Document((("Rain", "fell"), ("Wind", "blew", "hard")), None)

    spans = model(batch_of(model, [document])).rankings[0].spans.tolist()

    assert all(0 <= first <= last < 5 and last - first < 3 for first, last in spans)
    assert all((first < 2) == (last < 2) for first, last in spans)
    assert {(n, n) for n in range(5)} | {(0, 1)} <= set(map(tuple, spans))


def bin_of(distance: int) -> int:
    bounds = [(1, 1), (2, 2), (3, 3), (4, 4), (5, 7), (8, 15), (16, 31), (32, 63), (64, 10**9)]
    (found,) = (n for n, (low, high) in enumerate(bounds, start=1) if low <= distance <= high)
    return found


@pytest.mark.parametrize("features", [{}, {"use_speakers": False}, {"use_genre": False}])
def test_pair_scores_equal_those_of_explicit_vectors(features: dict[str, bool]):
    model = ranker(max_antecedents=70, **features)
    scorer = model.antecedents
    num_spans = 80
    places = torch.arange(num_spans)
    vectors = torch.randn(num_spans, model.mentions.span_dim)
    spans = Spans(places, places * 0, torch.randn(num_spans), vectors)
    speakers = torch.randint(3, (num_spans,))
    genre = torch.tensor(2)

    found = scorer(spans, speakers, genre)

    assert found.shape == (num_spans, 70)
    for i in (0, 1, 17, 79):
        for j in range(max(0, i - 70), i):
            parts = [vectors[i], vectors[j], vectors[i] * vectors[j]]
            parts.append(scorer.distance_embedding.weight[bin_of(i - j)])
            if scorer.speaker_embedding is not None:
                parts.append(scorer.speaker_embedding.weight[int(speakers[i] == speakers[j])])
            if scorer.genre_embedding is not None:
                parts.append(scorer.genre_embedding.weight[2])
            score = scorer.score(scorer.feedforward(torch.cat(parts))).squeeze()
            expected = score + spans.scores[i] + spans.scores[j]
            torch.testing.assert_close(found[i, i - j - 1], expected, rtol=1e-4, atol=1e-5)
        assert torch.isinf(found[i, i:]).all()


def test_the_speaker_of_a_span_and_the_genre_count():
    model = ranker().eval()
    talk = EXAMPLES[1]
    one_speaker = Document(talk.sentences, talk.clusters, genre=talk.genre)
    other_genre = Document(talk.sentences, talk.clusters, speakers=talk.speakers, genre="nw")

    losses = model(batch_of(model, [talk, one_speaker, other_genre])).example_losses

    assert len(set(losses.tolist())) == 3


def test_training_takes_a_window_of_sentences():
    model = ranker(max_training_sentences=2)
    batch = batch_of(model, EXAMPLES[:1])

    firsts = {int(model(batch).rankings[0].spans.min()) for _ in range(20)}

    assert len(firsts) > 1
    assert len(model(batch).rankings[0].spans) < int(0.8 * 20)
    assert len(model.eval()(batch).rankings[0].spans) == int(0.8 * len(EXAMPLES[0].words))


def test_window_keeps_mentions_and_positions():
    batch = batch_of(ranker())
    words = [word for example in EXAMPLES for word in example.words]
    starts = [0, *torch.tensor([len(example.words) for example in EXAMPLES]).cumsum(0).tolist()]

    torch.manual_seed(4)
    window = batch.window(2)

    assert window.num_tokens == sum(map(len, window.text.words)) < batch.num_tokens
    assert window.text.mask.shape[1] == max(map(len, window.text.words))
    for row, first, last, cluster in window.mentions.tolist():
        document = int(window.documents[row])
        place = int(window.offsets[row]) + first
        mention = (place, place + last - first)
        assert mention in merged(EXAMPLES[document].clusters)[cluster - 1]
        assert window.text.words[row][first] == words[starts[document] + place]


def test_short_batch_is_a_single_window():
    batch = batch_of(ranker())

    assert batch.window(4) is batch


def test_too_wide_mentions_are_not_in_the_loss():
    wide, narrow = ranker(max_span_width=10), ranker(max_span_width=1)

    assert wide(batch_of(wide)).loss > 0
    assert narrow(batch_of(narrow)).loss > 0


def test_dropout_affects_words_and_encoder_output():
    model = ranker(lexical_dropout=0.5, dropout=0.25)
    seen: dict[str, Words] = {}
    model.mentions.register_forward_hook(lambda _, inputs, __: seen.update(words=inputs[0]))

    model(batch_of(model, EXAMPLES[:1]))

    assert 0.35 < float((seen["words"].embedded == 0).float().mean()) < 0.65
    assert 0.15 < float((seen["words"].encoded == 0).float().mean()) < 0.35


def read_by(model: SpanRanker, module: nn.Module) -> Tensor:
    """What a part of a model reads of the first document, in training."""
    seen: list[Tensor] = []
    module.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0]))
    model(batch_of(model, EXAMPLES[:1]))
    return seen[0]


def share_of_zeros(values: Tensor) -> float:
    return float((values == 0).float().mean())


@pytest.mark.parametrize("reads", ["sentence", "document"])
def test_dropout_affects_the_input_of_the_encoder(reads: str):
    model = ranker(lexical_dropout=0.5, encoder_reads=reads)

    read = read_by(model, model.encoder)

    words = read[read.any(dim=2)]
    assert 0.35 < share_of_zeros(words) < 0.65


def test_dropout_affects_width_and_pair_features():
    model = ranker(dropout=0.5)
    found: list[Tensor] = []
    for module in (model.mentions, model.antecedents):
        module.dropout.register_forward_hook(lambda *held: found.append(held[2]))
    spans: list[Spans] = []
    model.mentions.register_forward_hook(lambda *held: spans.append(held[2]))

    model(batch_of(model, EXAMPLES[:1]))

    assert len(found) > 1
    assert all(0.35 < share_of_zeros(values) < 0.65 for values in found)
    assert 0.3 < share_of_zeros(spans[0].vectors[:, -4:]) < 0.7


def test_output_embedder_is_appended_to_the_encoder():
    plain, wider = ranker(), ranker(output_embedder={**WORDS, "lowercase": True})

    assert wider.mentions.span_dim == plain.mentions.span_dim + 12
    assert len(wider.indexers) == 2


@pytest.mark.parametrize("reads", ["sentence", "document"])
def test_context_embedder_reaches_only_the_encoder(reads: str):
    lowercase = {**WORDS, "lowercase": True}
    plain, wider = ranker(), ranker(context_embedder=lowercase, encoder_reads=reads).eval()
    seen: list[Words] = []
    wider.mentions.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0]))
    batch = batch_of(wider, EXAMPLES[:1])

    wider(batch)
    with torch.no_grad():
        wider.context_embedder.embedding.weight.mul_(2)
    wider(batch)

    assert wider.mentions.span_dim == plain.mentions.span_dim
    assert wider.encoder.input_dim == 12
    assert len(wider.indexers) == 2
    assert seen[0].embedded.equal(seen[1].embedded)
    assert not seen[0].encoded.allclose(seen[1].encoded)


def test_defaults_are_those_of_the_paper():
    """Lee et al. 2017, section 8."""
    expected = {
        "feature_size": 20,
        "max_span_width": 10,
        "spans_per_word": 0.4,
        "max_antecedents": 250,
        "use_speakers": True,
        "use_genre": True,
        "max_training_sentences": 50,
        "lexical_dropout": 0.5,
        "dropout": 0.2,
    }
    parameters = signature(SpanRanker).parameters

    assert {name: parameters[name].default for name in expected} == expected


def test_model_can_be_built_without_memory_for_weights():
    with torch.device("meta"):
        model = ranker()

    assert all(parameter.is_meta for parameter in model.parameters())


def test_genres_that_were_not_seen_share_a_vector():
    model = ranker().eval()
    first, second = (Document(EXAMPLES[1].sentences, (), genre=genre) for genre in ("x", None))

    losses = model(batch_of(model, [first, second])).example_losses

    torch.testing.assert_close(losses[0], losses[1])


def test_unseen_genre_has_a_zero_vector():
    model = ranker()

    model(batch_of(model)).loss.backward()

    unknown = COUNTS.words("genres").id("x")
    weight = model.antecedents.genre_embedding.weight
    assert not weight[unknown].any()
    assert not weight.grad[unknown].any()
    assert all(row.any() for number, row in enumerate(weight) if number != unknown)


def test_data_without_genres_can_be_learned():
    counts = Vocabularies({"words": Counter(["Rain"]), "genres": Counter()})
    model = parse(Model, CONFIG, source="a.jsonnet").build(vocabularies=counts)

    assert model.antecedents.genre_embedding.num_embeddings == 2


def test_embedders_can_read_the_whole_document(tmp_path: Path):
    bilm, options = NumpyBiLm.random(), {"encoder_reads": "document", "embedder_reads": "document"}
    model = ranker(embedder=carrying_elmo(bilm, tmp_path), **options)
    batches = [batch_of(model, EXAMPLES[:2]), batch_of(model, EXAMPLES[2:])]
    rows = [[EXAMPLES[0].words, EXAMPLES[2].words], [EXAMPLES[1].words]]
    check_order_of_reading(model, batches, rows, bilm)


def test_words_have_the_same_vectors_in_documents():
    options = {"encoder_reads": "document", "context_embedder": WORDS, "output_embedder": WORDS}
    characters = {
        "type": "character_encoding",
        "embedding": {"embedding_dim": 3},
        "encoder": {"type": "cnn", "num_filters": 4, "ngram_filter_sizes": [2]},
    }
    options["embedder"] = {"token_embedders": {"characters": characters, "tokens": WORDS}}
    by_sentence, whole = ranker(**options), ranker(**options, embedder_reads="document")
    batch = batch_of(whole)
    for first, second in zip(
        by_sentence.eval()(batch).rankings, whole.eval()(batch).rankings, strict=True
    ):
        assert torch.equal(first.spans, second.spans)
        torch.testing.assert_close(first.choices, second.choices)
    whole.train()(batch.window(2)).loss.backward()


def test_embedders_of_documents_need_an_encoder_of_documents():
    with pytest.raises(BuildError, match="embedder_reads: 'document' needs encoder_reads"):
        ranker(embedder_reads="document")
