"""Functions whose keywords are options: a wrong one gets a suggestion, and help shows each."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from bridge.errors import UnknownOptionError
from bridge.options.option import declared, described, names_of
from bridge.suggestions import nearest

P = ParamSpec("P")
R = TypeVar("R")

OPTIONS = "<options>"
"""The place of the list of options in a docstring."""


def keywords(options: type | None = None) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Makes a function suggest a keyword if it gets an unknown one. `options` are the keywords that
    it takes as `**options`, a TypedDict: help shows them one by one."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        shown = _signature(function, options)
        known = set(shown.parameters)

        @functools.wraps(function)
        def checked(*arguments: P.args, **options: P.kwargs) -> R:
            for name in options:
                if name not in known:
                    meant = nearest(name, known)
                    help = (
                        f"did you mean '{meant}'?"
                        if meant
                        else f"it has {', '.join(sorted(known))}"
                    )
                    raise UnknownOptionError(
                        f"{function.__name__}() has no option '{name}'; {help}"
                    )
            return function(*arguments, **options)

        checked.__signature__ = shown  # type: ignore[attr-defined]
        if options is not None and checked.__doc__:
            text = inspect.cleandoc(checked.__doc__)
            checked.__doc__ = text.replace(OPTIONS, described(options))
        return checked

    return decorate


def _signature(function: Callable[..., Any], options: type | None) -> inspect.Signature:
    """The signature of a function with its options one by one."""
    shown = inspect.signature(function)
    if options is None:
        return shown
    own = [p for p in shown.parameters.values() if p.kind is not p.VAR_KEYWORD]
    types = names_of(options)
    further = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=option.default,
            annotation=types[name],
        )
        for name, option in declared(options)
    ]
    return shown.replace(parameters=[*own, *further])
