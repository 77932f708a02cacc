"""Classes of fields, as `dataclasses` has them, in a thirtieth of its time: that compiles six
functions for each class, and a conversion imports fifty. Here, `__init__` alone is compiled, and
that when the first instance is made."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, ClassVar, NoReturn, TypeVar, dataclass_transform

_MISSING: Any = object()


class _Factory:
    """Makes the default of a field, for each instance its own."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


def field(*, default_factory: Callable[[], Any]) -> Any:
    """A field whose default is made for each instance."""
    return _Factory(default_factory)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Struct:
    """The base of a class of fields, which are its annotated names, in order. Structs are equal
    when they are of one class and their fields are equal.

    `class S(Struct)` does not change and has a hash; with `frozen=False` it is the other way round.
    With `eq=False` a struct equals itself alone. `__post_init__` is called as in a dataclass.
    """

    _fields: ClassVar[tuple[str, ...]] = ()
    _values: ClassVar[Callable[[Any], Any]]
    _frozen: ClassVar[bool]

    def __init_subclass__(cls, frozen: bool = True, eq: bool = True) -> None:
        cls._fields = (*cls._fields, *cls.__annotations__)
        cls.__match_args__ = cls._fields  # type: ignore
        cls._values = attrgetter(*cls._fields) if cls._fields else type
        cls.__init__ = _init_later  # type: ignore[method-assign]
        cls._frozen = frozen
        if frozen:
            cls.__setattr__ = cls.__delattr__ = _refuse  # type: ignore[assignment, method-assign]
        if not eq:
            cls.__eq__, cls.__hash__ = object.__eq__, object.__hash__  # type: ignore
        elif not frozen:
            cls.__hash__ = None  # type: ignore

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        values = type(self)._values
        return bool(values(self) == values(other))

    def __hash__(self) -> int:
        return hash(type(self)._values(self))

    def __repr__(self) -> str:
        said = (f"{name}={value!r}" for name, value in as_dict(self).items())
        return f"{type(self).__qualname__}({', '.join(said)})"


S = TypeVar("S", bound=Struct)


def as_dict(struct: Struct) -> dict[str, Any]:
    """The fields by name; what they hold stays as it is."""
    return {name: getattr(struct, name) for name in struct._fields}


def replace(struct: S, **changes: Any) -> S:
    """A struct with other values in some fields."""
    return type(struct)(**{**as_dict(struct), **changes})


def changed(struct: Struct) -> dict[str, Any]:
    """The fields by name that are not what they are when they are not given."""
    cls = type(struct)
    return {n: v for n, v in as_dict(struct).items() if getattr(cls, n, _MISSING) != v}


def _refuse(self: Struct, name: str, value: object = None) -> NoReturn:
    raise AttributeError(f"{type(self).__name__} does not change: {name}")


def _init_later(self: Any, *arguments: Any, **named: Any) -> None:
    """Puts in its own place the initializer of the class, and calls it."""
    cls = type(self)
    cls.__init__ = _initializer(cls)
    cls.__init__(self, *arguments, **named)


def _initializer(cls: type[Struct]) -> Any:
    known: dict[str, Any] = {"_set": object.__setattr__, "_missing": _MISSING}
    parameters, lines = ["self"], []
    for name in cls._fields:
        parameter = value = name
        default = getattr(cls, name, _MISSING)
        if isinstance(default, _Factory):
            known[f"_{name}"], parameter = default.make, f"{name}=_missing"
            value = f"_{name}() if {name} is _missing else {name}"
        elif default is not _MISSING:
            known[f"_{name}"], parameter = default, f"{name}=_{name}"
        parameters.append(parameter)
        # A struct that does not change refuses to be set.
        lines.append(f"_set(self, {name!r}, {value})" if cls._frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n  " + "\n  ".join(lines or ["pass"]), known)
    return known["__init__"]
