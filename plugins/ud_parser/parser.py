"""A biaffine parser that also predicts parts of speech, features and lemmas."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from elmo_framework.config import Dim, DropoutRate, Injected, Lazy
from elmo_framework.data import TextBatch, Vocabularies
from elmo_framework.embedders import TextEmbedder, TokenEmbedder
from elmo_framework.encoders import Encoder
from elmo_framework.model import Head, ModelOutput
from elmo_framework.nn import VariationalDropout

from .biaffine import ArcScorer, LabelScorer, Projection
from .lemma_rules import best_lemma
from .sentence import IGNORED, Parse, Targets, UdBatch
from .spanning_tree import maximum_spanning_tree
from .task import UdTask

_TREE, _UPOS, _FEATS, _LEMMAS = "tree", "upos", "feats", "lemmas"
_PLACES = (_TREE, _UPOS, _FEATS, _LEMMAS)
_ROOT = "root"


@dataclass(frozen=True, slots=True)
class UdOutput(ModelOutput):
    """Output of the parser for a batch.

    Attributes:
        arcs: the log probability of each head; head 0 is the root.
        dependents: the vectors of words as dependents, for the relations.
        heads: those of the root and of words as heads.
        upos: the scores of parts of speech.
        feats: the scores of features.
        lemmas: the scores of lemma rules.
    """

    arcs: Float[Tensor, "batch tokens heads"]
    dependents: Float[Tensor, "batch tokens dim"]
    heads: Float[Tensor, "batch heads dim"]
    upos: Float[Tensor, "batch tokens upos"]
    feats: Float[Tensor, "batch tokens feats"]
    lemmas: Float[Tensor, "batch tokens rules"]


@final
@Head.register("ud_parser")
class UdParser(Head[UdBatch]):
    """A biaffine dependency parser (Dozat and Manning 2017) with a tagger and a lemmatizer.

    All tasks read one encoder. The head of a word is predicted by a biaffine function of the
    encoded words and a learned root, and decoded as a maximum spanning tree with one root; the
    relation by another such function of the word and its head. Parts of speech, features (as one
    label) and lemma rules are predicted for each word by a linear layer; lemmas read the embedded
    word too. The loss is the sum of the five cross-entropies, averaged over words.

    Args:
        embedder: embeds the words.
        encoder: encodes the embedded sentence.
        vocabularies: counted in the training data.
        output_embedders: vectors appended to the output of the encoder, for one task each: `tree`,
            `upos`, `feats` or `lemmas`. With ELMo, each task has its own mix of the layers of one
            forward pass.
        arc_representation_dim: the dimension of a word as a head or as a dependent, for arcs.
        tag_representation_dim: the same for relations.
        dropout: the dropout rate of the encoded and the projected vectors.
        input_dropout: the dropout rate of the embedded words.
    """

    task = UdTask()

    def __init__(
        self,
        embedder: TextEmbedder,
        encoder: Lazy[Encoder],
        vocabularies: Injected[Vocabularies],
        output_embedders: dict[str, TokenEmbedder] | None = None,
        arc_representation_dim: Dim = 500,
        tag_representation_dim: Dim = 100,
        dropout: DropoutRate = 0.33,
        input_dropout: DropoutRate = 0.33,
    ) -> None:
        super().__init__()
        _check_places(output_embedders or {})
        self._upos, self._feats = vocabularies.labels("upos"), vocabularies.labels("feats")
        self._deprels = vocabularies.labels("deprels")
        self._rules = vocabularies.labels("lemma_rules")
        self.embedder = embedder
        self.input_dropout = VariationalDropout(input_dropout)
        self.encoder = encoder.build(input_dim=embedder.output_dim)
        self.dropout = VariationalDropout(dropout)
        self.output_embedders = nn.ModuleDict(dict(sorted((output_embedders or {}).items())))
        dims = dict.fromkeys(_PLACES, self.encoder.output_dim)
        for place, added in (output_embedders or {}).items():
            dims[place] += added.output_dim
        self.root = nn.Parameter(torch.empty(dims[_TREE]).uniform_(-0.1, 0.1))
        sizes = {"arc": arc_representation_dim, "tag": tag_representation_dim}
        self.roles = nn.ModuleDict(
            {
                f"{part}_{role}": Projection(dims[_TREE], size, dropout)
                for part, size in sizes.items()
                for role in ("dependent", "head")
            }
        )
        self.arcs = ArcScorer(arc_representation_dim)
        self.relations = LabelScorer(tag_representation_dim, len(self._deprels))
        self.upos = nn.Linear(dims[_UPOS], len(self._upos))
        self.feats = nn.Linear(dims[_FEATS], len(self._feats))
        self.lemmas = nn.Linear(dims[_LEMMAS] + embedder.output_dim, len(self._rules))

    def forward(self, batch: UdBatch) -> UdOutput:
        """Score the analyses of each word; the relations are scored for the gold heads."""
        text = batch.text
        embedded = self.input_dropout(self.embedder(text))
        encoded = self.dropout(self.encoder(embedded, text.mask))
        nodes = self._read(encoded, _TREE, text)
        nodes = torch.cat([self.root.expand(len(nodes), 1, -1), nodes], dim=1)
        output = UdOutput(
            loss=None,
            arcs=self._arcs(nodes, text),
            dependents=self.roles["tag_dependent"](nodes[:, 1:]),
            heads=self.roles["tag_head"](nodes),
            upos=self.upos(self._read(encoded, _UPOS, text)),
            feats=self.feats(self._read(encoded, _FEATS, text)),
            lemmas=self.lemmas(torch.cat([self._read(encoded, _LEMMAS, text), embedded], dim=2)),
        )
        return output if batch.targets is None else self._with_loss(output, batch.targets, text)

    def predict(self, output: UdOutput, batch: UdBatch) -> list[Parse]:
        """Return the best tree of each sentence, and the best labels of its words."""
        arcs = output.arcs.detach().double().cpu().numpy()
        lengths = [len(words) for words in batch.text.words]
        trees = [
            maximum_spanning_tree(scores[:length, : length + 1])
            for scores, length in zip(arcs, lengths, strict=True)
        ]
        heads = torch.zeros(output.arcs.shape[:2], dtype=torch.long)
        for row, tree in zip(heads, trees, strict=True):
            row[: len(tree)] = torch.tensor(tree, dtype=torch.long)
        relations = self._best_relations(output, heads.to(output.arcs.device)).tolist()
        upos, feats = output.upos.argmax(dim=2).tolist(), output.feats.argmax(dim=2).tolist()
        return [
            Parse(
                upos=tuple(self._upos.items[index] for index in upos[row][:length]),
                feats=tuple(self._feats.items[index] for index in feats[row][:length]),
                lemmas=self._lemmas(batch.text.words[row], output.lemmas[row]),
                heads=tuple(trees[row]),
                deprels=tuple(self._deprels.items[index] for index in relations[row][:length]),
            )
            for row, length in enumerate(lengths)
        ]

    def _read(
        self, encoded: Float[Tensor, "batch tokens dim"], place: str, text: TextBatch
    ) -> Float[Tensor, "batch tokens more"]:
        """Append the vectors of the embedder for one task, if there is one."""
        if place not in self.output_embedders:
            return encoded
        return torch.cat([encoded, self.dropout(self.output_embedders[place](text))], dim=2)

    def _arcs(
        self, nodes: Float[Tensor, "batch heads dim"], text: TextBatch
    ) -> Float[Tensor, "batch tokens heads"]:
        scores = self.arcs(self.roles["arc_dependent"](nodes[:, 1:]), self.roles["arc_head"](nodes))
        is_node = functional.pad(text.mask, (1, 0), value=True)
        log_p: Tensor = scores.masked_fill(~is_node[:, None, :], -1e9).log_softmax(dim=2)
        return log_p

    def _relation_scores(
        self, output: UdOutput, heads: Int[Tensor, "batch tokens"]
    ) -> Float[Tensor, "batch tokens labels"]:
        places = heads[:, :, None].expand(-1, -1, output.heads.shape[2])
        scores: Tensor = self.relations(output.dependents, output.heads.gather(1, places))
        return scores

    def _best_relations(
        self, output: UdOutput, heads: Int[Tensor, "batch tokens"]
    ) -> Int[Tensor, "batch tokens"]:
        """Return the best relations; `root` is that of the root, and of no other word."""
        # `predict` runs outside autocast: with mixed precision the vectors are bfloat16.
        dtype = self.relations.weight.dtype
        output = replace(
            output, dependents=output.dependents.to(dtype), heads=output.heads.to(dtype)
        )
        scores = self._relation_scores(output, heads)
        if _ROOT in self._deprels and len(self._deprels) > 1:
            root = self._deprels.id(_ROOT)
            is_root = torch.arange(len(self._deprels), device=heads.device) == root
            scores = scores.masked_fill((heads == 0)[:, :, None] != is_root, -1e9)
        return scores.argmax(dim=2)

    def _with_loss(self, output: UdOutput, targets: Targets, text: TextBatch) -> UdOutput:
        relations = self._relation_scores(output, targets.heads.clamp(min=0))
        pairs = [
            (output.arcs, targets.heads),
            (relations, targets.deprels),
            (output.upos, targets.upos),
            (output.feats, targets.feats),
            (output.lemmas, targets.lemmas),
        ]
        losses = sum(_cross_entropies(scores, right) for scores, right in pairs)
        assert isinstance(losses, Tensor)
        lengths = text.mask.sum(dim=1)
        return UdOutput(
            loss=losses.sum() / lengths.sum().clamp(min=1),
            example_losses=losses.sum(dim=1) / lengths.clamp(min=1),
            arcs=output.arcs,
            dependents=output.dependents,
            heads=output.heads,
            upos=output.upos,
            feats=output.feats,
            lemmas=output.lemmas,
        )

    def _lemmas(
        self, words: tuple[str, ...], scores: Float[Tensor, "tokens rules"]
    ) -> tuple[str, ...]:
        orders = scores[: len(words)].argsort(dim=1, descending=True, stable=True).tolist()
        return tuple(
            best_lemma(word, (self._rules.items[index] for index in order))
            for word, order in zip(words, orders, strict=True)
        )


def _check_places(embedders: dict[str, TokenEmbedder]) -> None:
    if unknown := sorted(set(embedders) - set(_PLACES)):
        raise ValueError(
            f"output_embedders: unknown task {unknown[0]!r}; choose from {', '.join(_PLACES)}"
        )


def _cross_entropies(
    scores: Float[Tensor, "batch tokens labels"], targets: Int[Tensor, "batch tokens"]
) -> Float[Tensor, "batch tokens"]:
    """Return -log p of each target; 0 where it is ignored."""
    return functional.cross_entropy(
        scores.transpose(1, 2), targets, ignore_index=IGNORED, reduction="none"
    )
