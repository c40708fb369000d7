"""Import the public names of a package when they are first used.

Only modules that Python has already loaded are imported here: see `io.search_path`.
"""

import sys
from importlib import import_module

# Not from `typing`, which the current folder could replace.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def attach_stub(
    package: str, init: str
) -> "tuple[Callable[[str], object], Callable[[], list[str]], list[str]]":
    """Return `__getattr__`, `__dir__` and `__all__` of a package, read from its `__init__.pyi`.

    Each line `from .module import Name as Name` of the stub makes `Name` public. A type checker
    reads the same line.

    Args:
        package: `__name__` of the package.
        init: `__file__` of the package.
    """
    with open(f"{init.removesuffix('.py')}.pyi", encoding="utf-8") as stub:  # noqa: PTH123
        imports = [line.replace("(", "").split() for line in stub.read().split("from ")[1:]]
    modules = {name: package + module for module, _, name, *_ in imports}

    def get_attribute(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    names = sorted(modules)
    return get_attribute, names.copy, names
