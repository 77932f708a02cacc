"""Options of the library as options of a command: `bridge.options` declares both."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, get_args

import typer

from bridge import options as library
from bridge.cli.options import (
    given_limits,
    given_values,
    input_shapes,
    new_names,
    output_ranks,
    split_names,
)
from bridge.errors import UsageError
from bridge.options import Option, declared

READERS: Mapping[str, Callable[[Sequence[str] | None], Any]] = {
    "input_shapes": input_shapes,
    "limits": given_limits,
    "output_ranks": output_ranks,
    "outputs": split_names,
    "rename": new_names,
    "values": given_values,
}
"""The functions that read the texts of an option, by its keyword."""

CHOICES = {"device": library.DeviceName, "ifs": library.IfsChoice}
"""The options that are one word of several."""


def takes_options(
    options: type, names: Sequence[str] | None = None, **defaults: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command the options of a class: those of some `names`, or all but functions.

    The command gets a mapping of keywords to values as its keyword `options`. `defaults` are other
    defaults than the library's.
    """
    chosen = {
        name: option
        for name, option in declared(options)
        if option.panel and (names is None or name in names)
    }

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True).parameters.values()
        made = [
            _parameter(name, option, defaults.get(name, option.default))
            for name, option in chosen.items()
        ]
        shown = [parameter for parameter in own if parameter.name != "options"]

        @functools.wraps(command)
        def run(**given: Any) -> None:
            read = {name: _read(name, given.pop(name)) for name in chosen}
            command(**given, options=read)

        run.__signature__ = inspect.Signature(_in_order([*shown, *made]))  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in (*shown, *made)}
        return run

    return decorate


def _parameter(name: str, option: Option, default: Any) -> inspect.Parameter:
    """A parameter of a command as Typer reads it."""
    flag = f"--{name.replace('_', '-')}"
    is_either = option.takes is bool and default is None
    words = get_args(CHOICES[name]) if name in CHOICES else ()
    found = typer.Option(
        *(option.flags or (() if is_either else (flag,))),
        metavar="|".join(words) or option.form or None,
        autocompletion=(lambda: list(words)) if words else None,
        help=f"{option.help} {option.written}".rstrip(),
        rich_help_panel=option.panel,
    )
    kind = option.takes if default is not None else option.takes | None
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, found],
    )


def _in_order(parameters: list[inspect.Parameter]) -> list[inspect.Parameter]:
    """Arguments first, then options, panel by panel."""
    positional = [p for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY]
    return [*positional, *(p for p in parameters if p not in positional)]


def _read(name: str, given: Any) -> Any:
    """The value of a keyword that the command line gave. UsageError where it cannot be read."""
    if name in READERS:
        return READERS[name](given) or None
    if name in CHOICES and given is not None:
        words = get_args(CHOICES[name])
        meant = {word.lower(): word for word in words}.get(given.lower())
        if meant is None:
            raise UsageError(f"--{name} is one of {', '.join(words)}, not {given!r}")
        return meant
    return given
