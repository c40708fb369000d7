import math

import pytest

from elmo_framework.metrics.perplexity import perplexity


def test_a_uniform_guess_has_the_size_of_the_vocabulary() -> None:
    assert perplexity(math.log(50)) == pytest.approx(50)


def test_a_loss_too_large_for_a_float_gives_infinity() -> None:
    assert perplexity(1e4) == math.inf
