"""Options of the library as options of a command: `bridge.options` declares both."""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from bridge.cli.options import READERS
from bridge.errors import UsageError
from bridge.options.option import PANELS, Option, declared


def takes_options(
    options: type, names: Sequence[str] | None = None, **defaults: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command the options of a class, all or those in `names`.

    The command gets two mappings by the library's keyword: `options` has the values, `written` the
    texts on the command line. `defaults` replace the library's defaults.
    """
    chosen = {
        name: option
        for name, option in declared(options)
        if option.takes is not None and (names is None or name in names)
    }

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True).parameters.values()
        made = [
            _parameter(name, option, defaults.get(name, option.default))
            for name, option in chosen.items()
        ]
        shown = [parameter for parameter in own if parameter.name not in ("options", "written")]

        @functools.wraps(command)
        def run(**given: Any) -> None:
            written = {name: given.pop(name) for name in chosen}
            read = {name: _read(name, option, written[name]) for name, option in chosen.items()}
            command(**given, options=read, written=written)

        run.__signature__ = inspect.Signature(_in_order([*shown, *made]))  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in (*shown, *made)}
        return run

    return decorate


def _parameter(name: str, option: Option, default: Any) -> inspect.Parameter:
    """A parameter of a command as Typer reads it."""
    flag = f"--{name.replace('_', '-')}"
    is_either = option.takes is bool and default is None
    words = list(option.choices)
    found = typer.Option(
        *(option.flags or (() if is_either else (flag,))),
        metavar="|".join(words) or option.form or None,
        autocompletion=(lambda: words) if words else None,
        min=option.least,
        help=option.line,
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

    def place(parameter: inspect.Parameter) -> int:
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            return -1
        panel = parameter.annotation.__metadata__[0].rich_help_panel
        return PANELS.index(panel) if panel in PANELS else -1

    return sorted(parameters, key=place)


def _read(name: str, option: Option, given: Any) -> Any:
    """The value of a keyword that the command line gave. UsageError if it cannot be read."""
    if name in READERS:
        return READERS[name](given) or None
    if option.choices and given is not None:
        meant = {word.lower(): word for word in option.choices}.get(given.lower())
        if meant is None:
            raise UsageError(f"--{name} is one of {', '.join(option.choices)}, not {given!r}")
        return meant
    return given
