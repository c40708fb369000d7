import pytest

from elmo_framework.data.vocabulary import Vocabulary
from elmo_framework.tasks.coreference.example import (
    Document,
    Mention,
    clusters_of,
    coreference_batch,
    merged,
)


def numbers(*clusters: list[int]) -> dict[int, int]:
    """The number that each word, as a mention, has in a batch of one document."""
    written = clusters_of([Mention(word, word) for word in held] for held in clusters)
    genres = Vocabulary(["", "?"], name="genres", unknown="?")
    batch = coreference_batch([Document((("word",) * 9,), written)], genres, ())
    rows = [(first, number) for _, first, _, number in batch.mentions.tolist()]
    assert len(dict(rows)) == len(rows)
    return dict(rows)


@pytest.mark.parametrize(
    ("clusters", "expected"),
    [
        (([0, 1], [2, 3]), {0: 1, 1: 1, 2: 2, 3: 2}),
        (([0, 1], [1, 2]), {0: 1, 1: 1, 2: 1}),
        (([0, 1], [2, 3], [5, 6], [3, 5, 1]), {0: 1, 1: 1, 2: 1, 3: 1, 5: 1, 6: 1}),
        (([0, 1, 0], [2, 2]), {0: 1, 1: 1, 2: 2}),
        (([0, 1, 2], [1], [4]), {0: 1, 1: 1, 2: 1, 4: 2}),
        ((), {}),
    ],
)
def test_training_merges_clusters_with_a_common_mention(
    clusters: tuple[list[int], ...], expected: dict[int, int]
):
    assert numbers(*clusters) == expected


def test_merged_clusters_are_disjoint_and_in_order():
    one, two, three = (Mention(word, word) for word in range(3))

    assert merged([(two, three), (one,), (three,)]) == ((one,), (two, three))
