"""An option is declared once: keyword, docstring and command line agree."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import bridge
from bridge.check import check
from bridge.cli import main
from bridge.cli.app import command_line
from bridge.cli.check import OPTIONS
from bridge.options import CheckOptions, ConvertOptions
from bridge.options.option import declared
from bridge.options.spoken import as_options

MODEL = Path(__file__).parents[2] / "roundtrip_models" / "if_nested_captures_every_scope.onnxtxt"


@pytest.mark.parametrize(
    ("function", "options", "shown"),
    [
        (bridge.convert, ConvertOptions, {name for name, o in declared(ConvertOptions) if o.takes}),
        (check, CheckOptions, set(OPTIONS)),
    ],
    ids=["convert", "check"],
)
def test_all_places_have_an_option(function, options: type, shown: set[str]) -> None:
    keywords = inspect.signature(function).parameters
    command = command_line().commands[function.__name__]
    parameters = {parameter.name: parameter for parameter in command.params}
    said = " ".join((function.__doc__ or "").split())
    for name, option in declared(options):
        assert keywords[name].default == option.default
        assert f"`{name}`: {option.help}" in said
        if name in shown:
            assert parameters[name].help == option.line


@pytest.mark.parametrize("command", ["convert", "check", "inspect", "ops"])
def test_help_fits_two_screens(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two screens have 50 lines of 100 columns each; an option takes one line."""
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit):
        main([command, "--help"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 85 and max(map(len, lines)) <= 100
    assert not [line for line in lines if "<" in line]  # types are words
    options = command_line().commands[command].params
    rows = [line for line in lines if line.startswith("│ -")]
    assert len(rows) >= sum(len(option.opts[0]) > 2 for option in options) - 2
    text = command_line().commands[command].help
    examples = [line for line in text.splitlines() if line.startswith("  bridge")]
    assert examples and {f" {line}" for line in examples} <= {line.rstrip() for line in lines}


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("give `input_shapes`", "give --input-shape"),
        ("`compress_to_fp16` is", "--compress-to-fp16 is"),
        ("(`force=True`)", "(--force)"),
        ('`device="ANY"`, `ifs="select"`', "--device ANY, --ifs select"),
        ('`limits={"nodes": 9, "depth": 2}`', "--limit nodes=9 --limit depth=2"),
        ("`input_shapes={'a b': [None, 3, 'n']}`", "--input-shape 'a b=[?,3,n]'"),
        ("`other` of `fills`", "`other` of `fills`"),  # fills is for Python alone
    ],
)
def test_commands_say_options(said: str, meant: str) -> None:
    assert as_options(said) == meant


@pytest.mark.parametrize(
    ("arguments", "keywords", "command", "library"),
    [
        (["a.xml", "--openvino", "1"], {"openvino": "1"}, "--openvino is '1'", "`openvino` is '1'"),
        (["a.onnx", "--beam-idx"], {"beam_idx": True},
         "--beam-idx is for writing IR", "`beam_idx` is for writing IR"),
        (["a.xml", "--input-shape", "x=[8..1]"], {"input_shapes": {"x": [1.5]}},
         "a range like 1..8", "bridge.Interval(1, 8)"),
    ],
)  # fmt: skip
def test_messages_speak_to_who_reads_them(
    arguments: list[str], keywords: dict, command: str, library: str, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    target, *rest = arguments
    with pytest.raises(SystemExit):
        main(["convert", str(MODEL), str(tmp_path / target), *rest])
    said = capsys.readouterr().err
    assert command in said and "`" not in said and "bridge." not in said
    with pytest.raises(bridge.BridgeError) as raised:
        bridge.convert(MODEL, tmp_path / target, **keywords)
    assert library in str(raised.value) and "--" not in str(raised.value)


def test_a_word_may_have_any_case(tmp_path: Path) -> None:
    arguments = ["convert", str(MODEL), str(tmp_path / "a.xml"), "--device", "cpu", "--ifs", "KEEP"]
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert not ended.value.code


def test_a_type_checker_refuses_other_words(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    script = tmp_path / "script.py"
    script.write_text(
        'import bridge\nbridge.convert("a.onnx", "a.xml", ifs="nonsense")\n'
        'bridge.convert("a.onnx", "a.xml", device="GPU", ifs="select")\n'
    )
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=", script], capture_output=True, text=True
    )
    errors = [line for line in checked.stdout.splitlines() if ": error:" in line]
    assert len(errors) == 1 and ":2:" in errors[0], checked.stdout + checked.stderr
