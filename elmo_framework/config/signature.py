"""Read the parameters of components, and the JSON that a configuration may give for them."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache, reduce
from operator import or_
from typing import (
    Annotated,
    Any,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from elmo_framework.config.types import Component, Default, Lazy, Supply

T = TypeVar("T")

_REQUIRED = inspect.Parameter.empty


@dataclass(frozen=True)
class Parameter:
    """One parameter of a constructor or of a registered function.

    Attributes:
        name: in the signature and in a config.
        shape: its type in a config.
        default: a value or a `Default`, unless it is required.
        supply: how code supplies it, if a config may not.
    """

    name: str
    shape: Shape
    default: Any
    supply: Supply | None

    @property
    def is_required(self) -> bool:
        """Whether a config, or the code that builds, must give it."""
        return self.default is _REQUIRED


@cache
def parameters(factory: Callable[..., Any]) -> Mapping[str, Parameter]:
    """Return the parameters of a constructor, or of a registered function, by name.

    Raises:
        TypeError: the signature is not a schema, as with `**kwargs` or without annotations.
    """
    by_name: dict[str, Parameter] = {}
    for parameter, hint in (*_signature(factory), *_family_signature(factory)):
        name = parameter.name
        try:
            if name in by_name:
                raise TypeError("is a key of each member of the family; remove it here")
            by_name[name] = _read(factory, parameter, hint)
        except TypeError as error:
            raise TypeError(f"{factory.__qualname__}({name}): {error}") from None
    return by_name


def configurable(factory: Callable[..., Any]) -> list[Parameter]:
    """Return the parameters that a configuration may set."""
    return [parameter for parameter in parameters(factory).values() if parameter.supply is None]


def _signature(function: Callable[..., Any]) -> list[tuple[inspect.Parameter, Any]]:
    hints = _hints(function)
    signature = inspect.signature(function).parameters.values()
    return [(parameter, hints.get(parameter.name)) for parameter in signature]


def _family_signature(factory: Callable[..., Any]) -> list[tuple[inspect.Parameter, Any]]:
    """Return the parameters of `post_init`, without `self`, with their type hints."""
    cls = component_class(factory)
    return _signature(cls.post_init)[1:] if issubclass(cls, Component) else []


def component_class(factory: Callable[..., T]) -> type[T]:
    """Return a class itself, and the class in the return annotation of a registered function.

    Raises:
        TypeError: the annotation is missing, or is not a class.
    """
    if isinstance(factory, type):
        return factory
    returned, _ = unwrap(_hints(factory).get("return"))
    if not isinstance(returned, type):
        raise TypeError(f"{factory.__qualname__}: annotate the class of the component it returns")
    return returned


@cache
def _hints(factory: Callable[..., Any]) -> dict[str, Any]:
    has_constructor = isinstance(factory, type) and "__dataclass_fields__" not in vars(factory)
    target = inspect.getattr_static(factory, "__init__") if has_constructor else factory
    try:
        return get_type_hints(target, localns={factory.__name__: factory}, include_extras=True)
    except NameError as error:
        message = f"{factory.__qualname__}: {error}; types of parameters are needed at run time"
        raise TypeError(message) from error


def _read(factory: Callable[..., Any], parameter: inspect.Parameter, hint: Any) -> Parameter:
    _require_plain_signature(parameter, hint)
    supply = next(iter(_supplies(hint)), None)
    default = next((mark for mark in hint_metadata(hint) if isinstance(mark, Default)), None)
    shape = PlainType(hint) if supply else shape_of(hint)
    read = Parameter(parameter.name, shape, default or _default(factory, parameter), supply)
    _require_writable(read)
    return read


def _supplies(hint: Any) -> list[Supply]:
    return [mark for mark in hint_metadata(hint) if isinstance(mark, Supply)]


def _default(factory: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    for each in fields(factory) if is_dataclass(factory) else ():
        if each.name == parameter.name and each.default_factory is not MISSING:
            return each.default_factory()
    return parameter.default


def _require_plain_signature(parameter: inspect.Parameter, hint: Any) -> None:
    """Raise TypeError if a configuration cannot give the parameter by name and type."""
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise TypeError("a component takes no *args and no **kwargs; write an __init__ without")
    if hint is None:
        raise TypeError("has no type annotation")
    if parameter.name == "type":
        raise TypeError("`type` is the key that names the component; choose another name")
    if not _supplies(hint) and any(map(_supplies, walk(hint))):
        raise TypeError("Injected and Local mark a whole parameter, not a part of its type")


def _require_writable(parameter: Parameter) -> None:
    """Raise TypeError if the default cannot be written to a filled configuration."""
    inner, default = leaf(parameter.shape), parameter.default
    is_json = parameter.is_required or default is None or isinstance(default, Default)
    if isinstance(inner, ComponentType) and not is_json:
        raise TypeError("the default of a component is None or Annotated[..., Default(JSON)]")
    if isinstance(inner, OptionsType):
        for option in parameters(inner.factory).values():
            if option.supply or isinstance(leaf(option.shape), ComponentType):
                raise TypeError(
                    f"{inner}.{option.name}: a dataclass of options has plain values only; "
                    f"let {inner} inherit Registrable, or take {option.name} as another parameter"
                )


_BOUNDS = {
    "gt": ">",
    "ge": ">=",
    "lt": "<",
    "le": "<=",
    "multiple_of": "a multiple of",
    "min_length": "length >=",
    "max_length": "length <=",
}


def show(hint: Any) -> str:
    """Format a type hint for people: `float >= 0, < 1`, `'BIO' | 'BIOUL'`, `list[Path]`."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return show(arguments[0]) + ",".join(_bounds(hint.__metadata__))
    if origin is Literal:
        return " | ".join(map(repr, arguments))
    if is_union(hint):
        return " | ".join(map(show, arguments))
    if arguments:
        return f"{show(origin)}[{', '.join(map(show, arguments))}]"
    if hint is types.NoneType:
        return "None"
    return hint.__name__ if isinstance(hint, type) else str(hint)


def unwrap(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return a hint's class or special form, and its arguments, without `Annotated`."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    return get_origin(hint) or hint, get_args(hint)


def walk(hint: Any) -> Iterator[Any]:
    """Yield a hint and all hints inside it."""
    yield hint
    for argument in get_args(hint):
        yield from walk(argument)


def literals(hint: Any) -> tuple[Any, ...]:
    """Return the values of all `Literal` in a hint."""
    parts = (get_args(part) for part in walk(hint) if get_origin(part) is Literal)
    return tuple(value for values in parts for value in values)


def hint_metadata(hint: Any) -> tuple[Any, ...]:
    """Return the `Annotated` metadata of a hint, or of the members of its union."""
    members = get_args(hint) if is_union(hint) else (hint,)
    marked = (member for member in members if get_origin(member) is Annotated)
    return tuple(mark for member in marked for mark in member.__metadata__)


def replaced(hint: Any, old: Any, new: Any) -> Any:
    """Return a hint with `old` replaced by `new` everywhere."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is old:
        return new
    if origin is Literal or not arguments:
        return hint
    if origin is Annotated:
        return Annotated[(replaced(arguments[0], old, new), *hint.__metadata__)]
    inner = tuple(replaced(argument, old, new) for argument in arguments)
    return reduce(or_, inner) if is_union(hint) else origin[inner]


def is_union(hint: Any) -> bool:
    """Return whether a hint is `A | B` or `Union[A, B]`."""
    return get_origin(hint) in (Union, types.UnionType)


def _bounds(metadata: tuple[Any, ...]) -> list[str]:
    return [
        f" {symbol} {_readable(getattr(mark, name))}"
        for mark in metadata
        for name, symbol in _BOUNDS.items()
        if getattr(mark, name, None) is not None
    ]


def _readable(bound: object) -> str:
    return f"{bound:,}" if isinstance(bound, int) else str(bound)


@dataclass(frozen=True)
class PlainType:
    """Numbers, strings, paths, literals, and lists, dicts, tuples and unions of them."""

    hint: Any

    def __str__(self) -> str:
        return show(self.hint)


@dataclass(frozen=True)
class OptionsType:
    """A dataclass of plain values."""

    factory: type

    def __str__(self) -> str:
        return self.factory.__name__


@dataclass(frozen=True)
class ComponentType:
    """A component, built before its owner, or passed to it as `Lazy`."""

    family: type[Component]
    is_lazy: bool

    def __str__(self) -> str:
        return self.family.__name__


@dataclass(frozen=True)
class ListType:
    """A list."""

    item: Shape

    def __str__(self) -> str:
        return f"list[{self.item}]"


@dataclass(frozen=True)
class TupleType:
    """A list of a fixed length, with one shape per item: `tuple[A, B]`."""

    items: tuple[Shape, ...]

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.items))}]"


@dataclass(frozen=True)
class DictType:
    """A dict with string keys."""

    item: Shape

    def __str__(self) -> str:
        return f"dict[str, {self.item}]"


@dataclass(frozen=True)
class OptionalType:
    """A shape or None."""

    item: Shape

    def __str__(self) -> str:
        return f"{self.item} | None"


Shape: TypeAlias = (
    PlainType | OptionsType | ComponentType | ListType | TupleType | DictType | OptionalType
)


def shape_of(hint: Any) -> Shape:
    """Convert a type hint; a hint without components and dataclasses is one `PlainType`.

    Raises:
        TypeError: a component or a dataclass is in an unsupported position.
    """
    origin, arguments = unwrap(hint)
    if origin is Lazy and arguments and isinstance(inner := shape_of(*arguments), ComponentType):
        return ComponentType(inner.family, is_lazy=True)
    if _is_component(origin):
        return ComponentType(origin, is_lazy=False)
    if _is_options(origin):
        return OptionsType(origin)
    is_plain = not any(map(_is_ours, walk(hint)))
    return PlainType(hint) if is_plain else _container(hint)


def leaf(shape: Shape) -> PlainType | OptionsType | ComponentType:
    """Unwrap the lists, dicts and `| None` of a shape.

    For a list of a fixed length, return the first item that is not plain.
    """
    if isinstance(shape, TupleType):
        return next(inner for inner in map(leaf, shape.items) if not isinstance(inner, PlainType))
    return leaf(shape.item) if isinstance(shape, ListType | DictType | OptionalType) else shape


def _container(hint: Any) -> Shape:
    origin, arguments = unwrap(hint)
    rest = [argument for argument in arguments if argument is not types.NoneType]
    if origin is list:
        return ListType(shape_of(*arguments))
    if origin is tuple and Ellipsis not in arguments:
        return TupleType(tuple(map(shape_of, arguments)))
    if origin is dict and arguments[0] is str:
        return DictType(shape_of(arguments[1]))
    if is_union(hint) and len(rest) == 1:
        return OptionalType(shape_of(rest[0]))
    raise TypeError(
        f"{show(hint)}: a component or a dataclass may be alone, in list[...], in dict[str, ...], "
        "in tuple[A, B] or with `| None`; Lazy[...] takes a component only"
    )


def _is_ours(hint: Any) -> bool:
    origin = get_origin(hint) or hint
    return origin is Lazy or _is_component(origin) or _is_options(origin)


def _is_component(origin: Any) -> bool:
    return isinstance(origin, type) and issubclass(origin, Component)


def _is_options(origin: Any) -> bool:
    return isinstance(origin, type) and is_dataclass(origin) and origin is not Lazy
