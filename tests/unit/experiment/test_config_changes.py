from __future__ import annotations

import pytest

from elmo_framework.experiment.config_changes import changes, differences


@pytest.mark.parametrize("value", [None, False])
def test_new_key_that_is_off_is_no_difference(value):
    before, now = {"model": {"type": "bidaf"}}, {"model": {"type": "bidaf", "new": value}}

    assert differences(before, now) == []


def test_new_key_that_is_on_is_a_difference():
    before, now = {"model": {"type": "bidaf"}}, {"model": {"type": "bidaf", "new": True}}

    assert differences(before, now) == ["model.new: null -> true"]
    assert differences({"new": True}, {"new": False}) == ["new: true -> false"]


@pytest.mark.parametrize("given", [{}, {"trainer": {}}, {"trainer": {"optimizer": "adam"}}])
def test_new_key_that_is_not_set_is_no_difference(given):
    before = {"trainer": {"optimizer": {"type": "adam"}}}
    now = {"trainer": {"optimizer": {"type": "adam", "new": 1}, "new": "float32"}}

    assert list(changes(before, now, given=given)) == []
    assert len(list(changes(before, now))) == 2
    assert list(changes(now, before, given=given)) != []


def test_new_key_that_is_set_is_a_difference():
    before, now = {"trainer": {}}, {"trainer": {"new": "bfloat16"}}

    assert list(changes(before, now, given=now)) == [("trainer.new", None, "bfloat16")]
