import torch

from elmo_framework.layers.carried_state import CarriedState

CPU = torch.device("cpu")


def state(*rows: float) -> dict:
    values = torch.tensor([[float(row)] for row in rows])
    return {"forward": (values, values + 0.5), "backward": (-values, -values - 0.5)}


def column(carried: CarriedState, num_rows: int) -> list[float]:
    return carried.rows(num_rows, CPU)["forward"][0].flatten().tolist()


def test_nothing_is_carried_into_the_first_batch() -> None:
    assert CarriedState().rows(3, CPU) == {}


def test_each_row_continues_from_the_same_row() -> None:
    carried = CarriedState()
    carried.keep(state(1, 2))
    torch.testing.assert_close(carried.rows(2, CPU), state(1, 2))


def test_a_larger_batch_adds_rows_of_zeros() -> None:
    carried = CarriedState()
    carried.keep(state(1, 2))
    assert column(carried, 4) == [1, 2, 0, 0]


def test_a_smaller_batch_updates_only_the_first_rows() -> None:
    carried = CarriedState()
    carried.keep(state(1, 2, 3))
    assert column(carried, 1) == [1]
    carried.keep(state(9))
    assert column(carried, 3) == [9, 2, 3]


def test_carried_state_is_detached() -> None:
    carried = CarriedState()
    carried.keep({"forward": (torch.ones(2, 1, requires_grad=True) * 2,)})
    assert not carried.rows(2, CPU)["forward"][0].requires_grad


def test_the_state_goes_through_names_and_back() -> None:
    carried, again = CarriedState(), CarriedState()
    carried.keep(state(1, 2))
    assert sorted(carried.tensors()) == ["backward.0", "backward.1", "forward.0", "forward.1"]
    again.load(carried.tensors())
    torch.testing.assert_close(again.rows(2, CPU), state(1, 2))
    again.load({})
    assert again.rows(2, CPU) == {}
