"""Reads constructors: what each parameter takes, and what a configuration may say."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass
from functools import cache
from typing import Any, get_type_hints

from elmo_framework.common.component import Default, Supply
from elmo_framework.common.hints import marks, parts
from elmo_framework.common.shapes import One, Options, Plain, Shape, leaf, shape_of

_REQUIRED = inspect.Parameter.empty


@dataclass(frozen=True)
class Parameter:
    """One parameter of a constructor.

    Attributes:
        name: as written in the signature and in a config.
        shape: what a config may say for it.
        default: a value or a `Default`, unless it is required.
        supply: how it is supplied, if a config may not say it.
    """

    name: str
    shape: Shape
    default: Any
    supply: Supply | None

    @property
    def is_required(self) -> bool:
        """Whether a config must say it, or else the code that builds."""
        return self.default is _REQUIRED


def parameters(factory: type) -> Mapping[str, Parameter]:
    """Return a constructor's parameters by name.

    Raises:
        TypeError: the constructor hides what a configuration may say.
    """
    return _parameters(factory)


def configurable(factory: type) -> list[Parameter]:
    """Return the parameters that a configuration may set."""
    return [parameter for parameter in parameters(factory).values() if parameter.supply is None]


@cache
def _parameters(factory: type) -> Mapping[str, Parameter]:
    hints = _hints(factory)
    found = {}
    for name, parameter in inspect.signature(factory).parameters.items():
        try:
            found[name] = _read(factory, parameter, hints.get(name))
        except TypeError as error:
            raise TypeError(f"{factory.__qualname__}({name}): {error}") from None
    return found


def _hints(factory: type) -> dict[str, Any]:
    is_generated = "__dataclass_fields__" in vars(factory)
    target = factory if is_generated else inspect.getattr_static(factory, "__init__")
    try:
        return get_type_hints(target, localns={factory.__name__: factory}, include_extras=True)
    except NameError as error:
        message = f"{factory.__qualname__}: {error}; types of a constructor are needed at run time"
        raise TypeError(message) from error


def _read(factory: type, parameter: inspect.Parameter, hint: Any) -> Parameter:
    _require_plain_signature(parameter, hint)
    supply = next(iter(_supplies(hint)), None)
    default = next((mark for mark in marks(hint) if isinstance(mark, Default)), None)
    shape = Plain(hint) if supply else shape_of(hint)
    read = Parameter(parameter.name, shape, default or _default(factory, parameter), supply)
    _require_writable(read)
    return read


def _supplies(hint: Any) -> list[Supply]:
    return [mark for mark in marks(hint) if isinstance(mark, Supply)]


def _default(factory: type, parameter: inspect.Parameter) -> Any:
    fields: dict[str, Field[Any]] = getattr(factory, "__dataclass_fields__", {})
    made = fields[parameter.name].default_factory if parameter.name in fields else MISSING
    return parameter.default if made is MISSING else made()


def _require_plain_signature(parameter: inspect.Parameter, hint: Any) -> None:
    """Refuse what hides from a reader, or from us, what a configuration may say."""
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise TypeError("a component takes no *args and no **kwargs; write an __init__ without")
    if hint is None:
        raise TypeError("has no type annotation")
    if parameter.name == "type":
        raise TypeError("`type` is the key that names the component; choose another name")
    if not _supplies(hint) and any(map(_supplies, parts(hint))):
        raise TypeError("Injected and Local mark a whole parameter, not a part of its type")


def _require_writable(parameter: Parameter) -> None:
    """Refuse what could not be written to a filled configuration."""
    inner, default = leaf(parameter.shape), parameter.default
    is_json = parameter.is_required or default is None or isinstance(default, Default)
    if isinstance(inner, One) and not is_json:
        raise TypeError("the default of a component is None or Annotated[..., Default(JSON)]")
    if isinstance(inner, Options):
        for held in parameters(inner.factory).values():
            _require_plain(held, inner)


def _require_plain(held: Parameter, owner: Options) -> None:
    if held.supply or isinstance(leaf(held.shape), One):
        raise TypeError(
            f"{owner}.{held.name}: a dataclass of options holds plain values only; "
            f"let {owner} inherit Registrable, or take {held.name} beside it"
        )
