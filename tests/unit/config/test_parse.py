from pathlib import Path
from typing import Any

import pytest

from elmo_framework.config import registry
from elmo_framework.config.parse import check, parse
from elmo_framework.config.resolve import filled
from elmo_framework.config.types import Component, Lazy
from elmo_framework.errors import BuildError, ConfigError
from tests.unit.config.example import (
    SOURCE,
    VOCABULARIES,
    Adam,
    Batches,
    CarelessEncoder,
    ComposeEncoder,
    Conll2003Reader,
    Console,
    CrfTagger,
    DataLoader,
    DatasetReader,
    ElmoTokenEmbedder,
    Embedding,
    Encoder,
    GradientDescent,
    Head,
    LstmEncoder,
    Model,
    OptionalWidthEncoder,
    PassThroughEncoder,
    ScalarMix,
    Schedule,
    ScheduleFunction,
    Study,
    TextEmbedder,
    TrainerOptions,
    Warmup,
    flat,
    linear,
    tagger,
)

PLUGINS = " For a plugin, add it to `plugins` or pass --include-package"


def problems(raw: object, family: type[Component] = Study) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(family, raw, source=SOURCE)
    return [f"{problem.path}: {problem.message}" for problem in caught.value.problems]


def built(**changes: object) -> CrfTagger:
    """Build the model of an experiment as a run does."""
    experiment = parse(Study, flat(model=tagger(**changes)), source=SOURCE).build()
    model = experiment.model.build(vocabularies=VOCABULARIES, device="cuda:0")
    assert isinstance(model, CrfTagger)
    return model


def encoder(raw: object, **supplied: object) -> Encoder:
    return parse(Encoder, raw, source=SOURCE).build(**supplied)


def test_a_flat_experiment_is_built() -> None:
    experiment = parse(Study, flat(), source=SOURCE).build()
    assert isinstance(experiment.dataset_reader, Conll2003Reader)
    assert experiment.train_data_path == Path("data/train.txt")
    assert experiment.test_data_path is None
    assert isinstance(experiment.trainer, GradientDescent)
    assert experiment.trainer.grad_norm == 5.0
    optimizer = experiment.trainer.optimizer.build(named_parameters=[1])
    assert isinstance(optimizer, Adam)
    assert (optimizer.lr, optimizer.named_parameters) == (0.01, [1])


def test_supplied_values_reach_all_declaring_descendants() -> None:
    model = built()
    assert model.labels == ["O"]
    words = model.embedder.token_embedders["tokens"]
    assert isinstance(words, Embedding)
    assert (words.vocabularies, words.device) == (VOCABULARIES, "cuda:0")
    assert isinstance(model.encoder, LstmEncoder)
    assert (model.encoder.input_dim, model.encoder.output_dim) == (1074, 400)


def test_a_lazy_inherits_the_injected_values_of_its_owner() -> None:
    model = built(encoder="pass_through", output_embedder={"type": "embedding", "embedding_dim": 3})
    assert isinstance(model.output_embedder, Embedding)
    assert model.output_embedder.vocabularies is VOCABULARIES
    assert isinstance(model.encoder, PassThroughEncoder)
    assert model.encoder.device == "cuda:0"


def test_supplied_values_pass_through_other_owners() -> None:
    inner = {"type": "compose", "encoders": ["pass_through"]}
    model = built(encoder={"type": "compose", "encoders": [inner]})
    assert isinstance(model.encoder, ComposeEncoder)
    middle = model.encoder.encoders[0]
    assert isinstance(middle, ComposeEncoder)
    last = middle.encoders[0]
    assert isinstance(last, PassThroughEncoder)
    assert last.device == "cuda:0"


def test_later_injected_values_override_inherited_ones() -> None:
    experiment = parse(Study, flat(), source=SOURCE).build(device="cpu")
    model = experiment.model.build(vocabularies=VOCABULARIES, device="cuda:1")
    assert isinstance(model, CrfTagger)
    words = model.embedder.token_embedders["tokens"]
    assert isinstance(words, Embedding)
    assert words.device == "cuda:1"


def test_a_sequence_of_lazy_encoders_chains_its_widths() -> None:
    sizes = [{"type": "lstm", "hidden_size": size} for size in (8, 6, 4)]
    composed = encoder({"type": "compose", "encoders": sizes}, input_dim=10)
    assert isinstance(composed, ComposeEncoder)
    assert [inner.input_dim for inner in composed.encoders] == [10, 8, 6]
    assert composed.output_dim == 4


def test_a_local_name_reaches_only_the_component_being_built() -> None:
    made = encoder({"type": "careless", "inner": "optional_width"}, input_dim=10)
    assert isinstance(made, CarelessEncoder)
    assert isinstance(made.inner, OptionalWidthEncoder)
    assert made.inner.input_dim == 0


def test_a_local_name_is_not_inherited_by_a_lazy() -> None:
    with pytest.raises(TypeError, match=r"missing 1 required .* 'input_dim'"):
        encoder({"type": "forgetful", "inner": "pass_through"}, input_dim=10)


def test_a_lazy_can_be_built_twice() -> None:
    lazy = parse(Encoder, {"type": "lstm", "hidden_size": 2}, source=SOURCE)
    first, second = lazy.build(input_dim=1), lazy.build(input_dim=2)
    assert first is not second
    assert (first.input_dim, second.input_dim) == (1, 2)


def test_a_dict_of_lists_of_lazy_components_stays_lazy() -> None:
    trainer = {"by_group": {"all": ["console"]}}
    options = parse(TrainerOptions, trainer, source=SOURCE).build(directory=Path("run"))
    assert isinstance(options, GradientDescent)
    assert options.by_group is not None
    (observer,) = options.by_group["all"]
    assert isinstance(observer, Lazy)
    console = observer.build()
    assert isinstance(console, Console)
    assert console.directory == Path("run")


def test_a_family_may_have_a_default_member() -> None:
    bare = flat(data_loader={}, trainer={})
    del bare["data_loader"]
    experiment = parse(Study, bare, source=SOURCE).build()
    assert isinstance(experiment.data_loader.build(), Batches)
    assert isinstance(experiment.trainer, GradientDescent)
    assert experiment.trainer.warmup == Warmup(steps=0)


@pytest.mark.parametrize("raw", ["batches", {"type": "batches"}, {}])
def test_the_default_member_still_accepts_its_type(raw: object) -> None:
    assert isinstance(parse(DataLoader, raw, source=SOURCE).build(), Batches)


@pytest.mark.parametrize("changes", [{}, {"type": "crf_tagger"}])
def test_a_concrete_class_needs_no_type_and_accepts_its_own(changes: dict[str, str]) -> None:
    raw = {key: value for key, value in tagger().items() if key != "type"} | changes
    assert parse(CrfTagger, raw, source=SOURCE).factory is CrfTagger


def test_a_concrete_class_refuses_another_type() -> None:
    assert problems(tagger(type="lstm"), CrfTagger) == [
        "type: unknown CrfTagger 'lstm'; choose from crf_tagger."
    ]


def test_a_class_without_a_name_takes_no_type() -> None:
    found = problems({"type": "text", "token_embedders": {}}, TextEmbedder)
    assert found == ["type: unknown key of TextEmbedder; choose from token_embedders."]


def test_single_member_is_not_the_default() -> None:
    assert problems({"dataset_reader": {}}, Study)[0] == (
        "dataset_reader.type: is missing; choose from conll2003."
    )


def test_a_misspelled_type_is_named() -> None:
    assert problems({"dataset_reader": {"tpye": "conll2003"}}, Study)[0] == (
        "dataset_reader.type: is missing (found 'tpye'); choose from conll2003."
    )


@pytest.mark.parametrize("asked", [Model, Head, CrfTagger, Model[Any]])
def test_member_matches_its_family_and_classes_between(asked: type[Head[Any]]) -> None:
    assert parse(asked, tagger(), source=SOURCE).factory is CrfTagger


def test_a_component_default_is_json_that_parse_substitutes() -> None:
    elmo = built().embedder.token_embedders["elmo"]
    assert isinstance(elmo, ElmoTokenEmbedder)
    assert isinstance(elmo.mix, ScalarMix)


@pytest.mark.parametrize(("raw", "expected"), [(3, 3), ([1, 2], [1, 2])], ids=["one", "several"])
def test_a_plain_union_takes_each_of_its_types(raw: object, expected: object) -> None:
    assert built(layers=raw).layers == expected


def test_every_problem_is_reported_at_its_path() -> None:
    model = tagger(
        vocabularies={},
        embedder={"token_embedders": {"a": "embeding", "b": {"type": "embedding", "device": 1}}},
        encoder={"type": "lstm", "hiden_size": 8, "input_dim": 3},
        dropout="0.5",
        pair=[1, "x"],
        layers=["top"],
    )
    changes = {"model": model, "sed": 3, "data_loader": ["batches"]}
    trainer = {"warmup": {"step": 1, "start": 0.1}, "callbacks": [{"type": "consle"}, 3]}
    assert problems(flat(**changes, trainer=trainer)) == [
        "sed: unknown key of Study; choose from data_loader, dataset_reader, model, random_"
        "seed, test_data_path, train_data_path, trainer, validation_data_path, "
        "validation_dataset_reader.",
        "model.vocabularies: is supplied to CrfTagger by the framework; remove it",
        "model.embedder.token_embedders.a.type: unknown TokenEmbedder 'embeding'; "
        f"choose from elmo_token_embedder, embedding. Did you mean 'embedding'?{PLUGINS}",
        "model.embedder.token_embedders.b.device: is supplied to Embedding by the framework; "
        "remove it",
        "model.embedder.token_embedders.b.embedding_dim: is required by Embedding (int > 0)",
        "model.encoder.hiden_size: unknown key of LstmEncoder; "
        "choose from bidirectional, hidden_size, num_layers. Did you mean 'hidden_size'?",
        "model.encoder.input_dim: is supplied to LstmEncoder by the framework; remove it",
        "model.encoder.hidden_size: is required by LstmEncoder (int > 0)",
        "model.dropout: Input should be a valid number, not '0.5'",
        "model.pair[1]: Input should be a valid integer, not 'x'",
        "model.layers: Input should be a valid integer, not ['top']",
        "model.layers[0]: Input should be a valid integer, not 'top'",
        "data_loader: expected DataLoader, not ['batches']; choose from batches, windows. "
        "Did you mean 'batches'?",
        "trainer.warmup.step: unknown key of Warmup; choose from start, steps. "
        "Did you mean 'steps'?",
        "trainer.warmup.steps: is required by Warmup (int)",
        "trainer.callbacks[0].type: unknown Watcher 'consle'; choose from console. "
        f"Did you mean 'console'?{PLUGINS}",
        "trainer.callbacks[1]: expected Watcher, not 3; choose from console.",
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"layers": 1.5}, "layers: Input should be a valid integer or a valid array, not 1.5"),
        ({"pair": [1]}, "pair[1]: is required"),
        ({"encoder": None}, "encoder: expected Encoder, not null; choose from "),
        ({"encoder": {"type": None}}, "encoder.type: unknown Encoder None; choose from "),
        ({"embedder": {"token_embedders": []}}, "embedder.token_embedders: expected dict[str, "),
    ],
)
def test_a_wrong_shape_is_named_by_its_path(changes: dict[str, Any], expected: str) -> None:
    (found,) = problems(tagger(**changes), Model)
    assert found.startswith(expected)


def test_message_names_file_and_number_of_problems() -> None:
    with pytest.raises(ConfigError) as caught:
        parse(Encoder, 3, source=SOURCE)
    assert str(caught.value).startswith(
        "experiments/ner/elmo.jsonnet: 1 problem in the configuration\n"
        "  (top level): expected Encoder, not 3; choose from "
    )


def test_rejected_options_are_config_problems() -> None:
    assert problems({"warmup": {"steps": 1, "start": 2}}, TrainerOptions) == [
        "warmup: Warmup: start is a share of the rate, at most 1"
    ]


def test_rejected_argument_names_file_and_path() -> None:
    with pytest.raises(BuildError) as caught:
        built(encoder={"type": "lstm", "hidden_size": 7})
    assert str(caught.value) == f"{SOURCE}: model.encoder: LstmEncoder: hidden_size must be even"
    assert not hasattr(caught.value, "__notes__")


def test_registered_function_builds_a_component() -> None:
    lazy = parse(Schedule, {"type": "linear", "num_steps": 4}, source=SOURCE)
    assert lazy.factory is linear
    schedule = lazy.build(directory=Path("runs/ner"))
    assert [schedule.factor(step) for step in (0, 1, 4)] == [1.0, 0.75, 0.0]
    assert filled(lazy) == {"type": "linear", "num_steps": 4, "end": 0.0}


def test_unmarked_injectable_parameters_are_explained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(registry._members, Encoder, dict(registry.members(Encoder)))

    @Encoder.register("unmarked")
    class Unmarked(Encoder):
        def __init__(self, input_dim: int, device: str, width: int) -> None: ...

    advice = "; the framework supplies it if its type is marked"
    name = Unmarked.__qualname__
    assert problems({"type": "unmarked"}, Encoder) == [
        f"input_dim: is required by {name} (int){advice} Local[...]",
        f"device: is required by {name} (str){advice} Injected[...]",
        f"width: is required by {name} (int)",
    ]


def test_registered_function_is_a_schema() -> None:
    raw = {"type": "linear", "num_stesp": 4, "end": "x", "directory": "runs/ner"}
    assert problems(raw, Schedule) == [
        "num_stesp: unknown key of linear; choose from end, num_steps. Did you mean 'num_steps'?",
        "directory: is supplied to linear by the framework; remove it",
        "num_steps: is required by linear (int > 0)",
        "end: Input should be a valid number, not 'x'",
    ]
    lazy = parse(Schedule, {"type": "linear", "num_steps": 4, "end": 2}, source=SOURCE)
    with pytest.raises(BuildError) as caught:
        lazy.build(directory=Path("runs/ner"))
    assert str(caught.value) == f"{SOURCE}: (top level): linear: end is above 1"


def test_registered_function_that_returns_no_component_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(registry._members, Schedule, dict(registry.members(Schedule)))

    @Schedule.register("forgetful")
    def forgetful() -> Schedule:
        ScheduleFunction(float)

    with pytest.raises(
        TypeError, match=r"forgetful returned None\nwhile building .* \(top level\)"
    ):
        parse(Schedule, "forgetful", source=SOURCE).build()


def test_other_exceptions_keep_their_type_with_a_note() -> None:
    with pytest.raises(RuntimeError, match="a bug of ours") as caught:
        built(encoder={"type": "lstm", "hidden_size": 8, "num_layers": 13})
    assert caught.value.__notes__[0] == (
        f"while building {SOURCE}: model.encoder, supplied with: input_dim"
    )


def test_a_missing_supply_is_our_error() -> None:
    with pytest.raises(TypeError, match=r"missing 1 required .* 'input_dim'") as caught:
        encoder({"type": "careless", "inner": {"type": "lstm", "hidden_size": 2}}, input_dim=3)
    assert caught.value.__notes__ == [
        f"while building {SOURCE}: inner, supplied with: nothing",
    ]


def test_a_generic_family_is_unwrapped() -> None:
    reader = parse(DatasetReader[Any], "conll2003", source=SOURCE).build()
    assert reader.read(Path("x")) == ["x"]


def test_embedders_are_built_in_the_order_of_the_config() -> None:
    assert list(built().embedder.token_embedders) == ["elmo", "tokens"]


def test_check_returns_a_partial_component_with_the_problems() -> None:
    raw = flat(model=tagger(dropout="x", encoder={"type": "lstm"}), sed=1)
    checked = check(Study, raw, source=SOURCE)
    assert [problem.path for problem in checked.problems] == [
        "sed",
        "model.encoder.hidden_size",
        "model.dropout",
    ]
    assert checked.component is not None
    assert checked.component.arguments["model"].factory is CrfTagger
    with pytest.raises(ConfigError):
        checked.unwrap()


def test_a_hopeless_configuration_has_no_component() -> None:
    assert check(Study, 3, source=SOURCE).component is None


@pytest.mark.parametrize("raw", [{"type": "lstm", "hidden_size": 8.0}])
def test_float_without_fraction_is_an_integer(raw: object) -> None:
    assert encoder(raw, input_dim=1).output_dim == 8


def test_an_empty_path_is_refused() -> None:
    assert problems(flat(train_data_path="")) == [
        "train_data_path: Input should be a path that is not empty, not ''"
    ]


def test_a_misspelled_choice_is_answered_with_the_nearest() -> None:
    found = problems({"type": "conll2003", "tag_label": "nre"}, DatasetReader)
    assert found == ["tag_label: Input should be 'ner' or 'pos', not 'nre'. Did you mean 'ner'?"]


def test_long_value_is_truncated_in_messages() -> None:
    (found,) = problems(flat(data_loader=["x" * 200]))
    assert found == (
        f"data_loader: expected DataLoader, not ['{'x' * 98}...; choose from batches, windows."
    )


def test_a_refusal_tells_its_path_apart() -> None:
    with pytest.raises(BuildError) as caught:
        built(encoder={"type": "lstm", "hidden_size": 7})
    problem = caught.value.problem
    assert str(problem) == "model.encoder: LstmEncoder: hidden_size must be even"
