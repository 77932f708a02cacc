"""The commands and their options, as a Typer app."""

import inspect
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core
import typer.main

from bridge.cli.output import echo
from bridge.errors import UsageError

COMMANDS = {
    "convert": "Convert a model to the format that the destination's suffix names.",
    "check": "Show that a model and its conversion compute the same.",
    "inspect": "Show a model's inputs, outputs, operators and nested graphs.",
    "ops": "List the operators and how each is converted.",
}
"""The help text of each command. The function and its module have the name of the command."""

_HELP = {"help_option_names": ["-h", "--help"]}


def _print_version(wanted: bool) -> None:
    if wanted:
        from bridge.release import release

        echo(f"bridge {release() or '(not installed)'}")
        raise typer.Exit()


def bridge(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Convert models between ONNX and OpenVINO IR, conditional subgraphs included."""


class Command(typer.core.TyperCommand):
    """A command that takes an option of one value once: the last one would count, unsaid."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads the arguments into the context's parameters."""
        if len(args) > 3:
            _, _, order = self.make_parser(ctx).parse_args(args=[*args])
            for option in order:
                many = option.param_type_name != "option" or getattr(option, "is_flag", False)
                if not (many or option.multiple) and order.count(option) > 1:
                    raise UsageError(f"{option.opts[0]}: is given twice, and takes one value")
        return super().parse_args(ctx, args)


class Convert(Command):
    """`convert`, which reads a call with one path or two and no option but `--quiet` by itself. For
    any value, Typer imports pydantic and makes a validator of each option, which takes a third of a
    small conversion."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads the arguments into the context's parameters."""
        paths = [text for text in args if text not in ("-q", "--quiet")]
        if len(paths) not in (1, 2) or any(path.startswith("-") for path in paths):
            return super().parse_args(ctx, args)
        function = import_module(".convert", __package__).convert
        declared = inspect.signature(function).parameters.values()
        ctx.params = {each.name: each.default for each in declared}
        source, *destination = map(Path, paths)
        ctx.params |= {"source": source, "destination": destination, "quiet": args != paths}
        return []


@cache
def command_line(name: str | None = None) -> Any:
    """The command line, or only the command of a `name`: Typer takes about 10 ms to read the
    options of each command."""
    app = typer.Typer(
        # Typer imports pydantic for these options, even if nobody gives them.
        add_completion=name is None,
        add_help_option=name is None,
        epilog="'bridge COMMAND --help' shows the options of a command, with examples.",
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings=_HELP,
    )
    app.callback()(bridge)
    for each in [name] if name else COMMANDS:
        function = getattr(import_module(f".{each}", __package__), each)
        own = Convert if each == "convert" else Command
        app.command(short_help=COMMANDS[each], cls=own, context_settings=_HELP)(function)
    made = typer.main.get_command(app)
    for command in (made, *getattr(made, "commands", {}).values()):
        _without_types(command)
    return made


def _without_types(command: Any) -> None:
    """Leaves Typer's names of types out of a command's help: an argument has its own word, and a
    switch takes no value."""
    give_help = command.get_help_option

    def help_option(context: Any) -> Any:
        option = give_help(context)
        if option is not None:
            option.metavar = ""
        return option

    command.get_help_option = help_option
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            parameter.display_type_rich = lambda ctx: ""
        elif parameter.is_flag:
            parameter.metavar = ""
