import math

import pytest

from elmo_framework.metrics.perplexity import perplexity


def test_perplexity_of_uniform_guess_is_vocabulary_size() -> None:
    assert perplexity(math.log(50)) == pytest.approx(50)


def test_perplexity_overflows_to_infinity() -> None:
    assert perplexity(1e4) == math.inf
