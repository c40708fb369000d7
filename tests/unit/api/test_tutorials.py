"""The three programs that every tutorial of ELMo has, with other imports and paths alone."""

from pathlib import Path

import torch
from torch import nn

from elmo_framework import CRF, Elmo, batch_to_ids


def test_the_same_word_has_other_vectors_in_other_sentences(folder: Path) -> None:
    options_file, weight_file = f"{folder}/options.json", f"{folder}/weights.hdf5"
    elmo = Elmo(options_file, weight_file, 1, dropout=0)
    sentences = [
        ["The", "dog", "began", "to", "bark", "."],
        ["The", "bark", "of", "the", "tree", "is", "rough", "."],
    ]
    character_ids = batch_to_ids(sentences)
    embeddings = elmo(character_ids)["elmo_representations"][0]
    similarity = torch.cosine_similarity(embeddings[0, 4], embeddings[1, 1], dim=0)
    assert embeddings.shape == (2, 8, elmo.get_output_dim())
    assert similarity < 0.999
    assert torch.cosine_similarity(embeddings[0, 4], embeddings[0, 4], dim=0) > 0.999


class Classifier(nn.Module):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.elmo = Elmo(folder / "options.json", folder / "weights.hdf5", 1, dropout=0.1)
        self.classifier = nn.Linear(self.elmo.get_output_dim(), 2)

    def forward(self, sentences: list[list[str]]) -> torch.Tensor:
        output = self.elmo(batch_to_ids(sentences))
        embeddings, mask = output["elmo_representations"][0], output["mask"]
        mask = mask.unsqueeze(-1).float()
        pooled = (embeddings * mask).sum(dim=1) / mask.sum(dim=1)
        return self.classifier(pooled)


def test_a_classifier_of_pooled_vectors_learns(folder: Path) -> None:
    torch.manual_seed(0)
    model = Classifier(folder)
    sentences = [["a", "good", "film"], ["bad"], ["good", "!"], ["a", "bad", "bad", "film"]]
    labels = torch.tensor([1, 0, 1, 0])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(60):
        loss = nn.functional.cross_entropy(model(sentences), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    assert model(sentences).argmax(dim=1).tolist() == labels.tolist()


class Tagger(nn.Module):
    def __init__(self, folder: Path, num_tags: int) -> None:
        super().__init__()
        self.elmo = Elmo(folder / "options.json", folder / "weights.hdf5", 1, dropout=0)
        self.hidden2tag = nn.Linear(self.elmo.get_output_dim(), num_tags)
        self.crf = CRF(num_tags, batch_first=True)

    def emissions(self, sentences: list[list[str]]) -> tuple[torch.Tensor, torch.Tensor]:
        output = self.elmo(batch_to_ids(sentences))
        return self.hidden2tag(output["elmo_representations"][0]), output["mask"]


def test_a_tagger_with_a_crf_learns(folder: Path) -> None:
    torch.manual_seed(0)
    model = Tagger(folder, num_tags=3)
    sentences = [["Ann", "Lee", "sings"], ["She", "met", "Ann", "Lee", "."]]
    tags = torch.tensor([[1, 2, 0, 0, 0], [0, 0, 1, 2, 0]])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(60):
        emissions, mask = model.emissions(sentences)
        loss = -model.crf(emissions, tags, mask=mask)
        model.zero_grad()
        loss.backward()
        optimizer.step()
    emissions, mask = model.emissions(sentences)
    assert model.crf.decode(emissions, mask=mask) == [[1, 2, 0], [0, 0, 1, 2, 0]]
