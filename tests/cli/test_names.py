"""Names are data: no name prints a line of its own, moves a cursor or becomes a command of CI."""

from __future__ import annotations

import io
import os
import pickle
import re
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from bridge.cli import main
from bridge.cli.output import progress, table
from bridge.errors import BridgeError, UnsupportedError, printable, text_of
from tests.support.command_line import Finished, bridge

BAD = "\nOK: forged\n::error file=a::b\r\x1b[31m\x9b\u202e\u2028\u2066##[error]</script>![x](y)"
FILE = "::error file=x::y\nOK: forged\x1b[2J\u202e.onnx"
posix = pytest.mark.skipif(os.name != "posix", reason="such names of files")


def save(path: Path, operator: str = "Relu") -> None:
    """A model with an If in which every name is hostile."""

    def named(name: str) -> str:
        return name + BAD

    def branch(op: str, inputs: int) -> onnx.GraphProto:
        node = helper.make_node(op, [named("x")] * inputs, [named(op)], name=named("node"))
        output = helper.make_tensor_value_info(named(op), TensorProto.FLOAT, None)
        return helper.make_graph([node], named("branch"), [], [output])

    branches = {"then_branch": branch("Add", 2), "else_branch": branch(operator, 1)}
    graph = helper.make_graph(
        [helper.make_node("If", [named("c")], [named("y")], name=named("if"), **branches)],
        named("graph"),
        [
            helper.make_tensor_value_info(named("c"), TensorProto.BOOL, []),
            helper.make_tensor_value_info(named("x"), TensorProto.FLOAT, [named("batch"), 2]),
        ],
        [helper.make_tensor_value_info(named("y"), TensorProto.FLOAT, None)],
    )
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8, doc_string=BAD), path)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with a model of hostile names and one of an unknown operator."""
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "evil.onnx")
    save(tmp_path / "unknown.onnx", "Foo" + BAD)
    return tmp_path


def require_harmless(text: str) -> None:
    lines = text.split("\n")
    assert not [line for line in lines if line.lstrip().startswith(("OK: forged", "::"))]
    assert all(line.isprintable() for line in lines) and "##[" not in text


def run(line: str) -> Finished:
    finished = bridge(*line.split())
    require_harmless(finished.out)
    require_harmless(finished.err)
    return finished


COMMANDS = {
    "inspect evil.onnx": 0,
    "inspect evil.onnx --json": 0,
    "inspect evil.onnx --graph": 0,
    "inspect evil.onnx --cost": 0,
    "convert evil.onnx evil.xml -v": 0,
    "convert evil.onnx evil.xml --check --json": 0,
    "convert unknown.onnx unknown.xml": 2,
    "convert unknown.onnx unknown.xml --debug": 2,
    "check evil.onnx -v --samples 1": 0,
    "check evil.onnx --json --samples 1": 0,
    "check unknown.onnx --samples 1": 2,
    "check . --samples 1": 2,
}


@pytest.mark.parametrize("line", COMMANDS)
def test_of_a_model(line: str, folder: Path) -> None:
    finished = run(line)
    assert finished.code == COMMANDS[line]
    assert "forged" in finished.out + finished.err or line.startswith(("convert evil", "check ."))


@posix
def test_of_a_file(folder: Path) -> None:
    (folder / "evil.onnx").rename(folder / FILE)
    for command in ("check", "inspect"):
        for words in ([FILE], [FILE, "--json"], ["--no\n::error::x", FILE], [f"no{FILE}"]):
            given = [*words, "--samples", "1"] if command == "check" else words
            finished = bridge(command, *given)
            require_harmless(finished.out)
            require_harmless(finished.err)
    many = run("check . --samples 1 --junit report.xml")
    assert "\\nOK: forged" in many.out and "\\nOK: forged" in many.err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal(folder: Path) -> None:
    """rich cannot print them either."""
    with redirect_stdout(Terminal()) as out, redirect_stderr(Terminal()) as err:
        with pytest.raises(SystemExit, match="0"):
            main(["inspect", "evil.onnx", "--cost"])
        table(("a", "b"), [(f"x{BAD}", BAD)])
        with progress(f"reading {BAD}") as doing:
            doing(BAD)
    for text in (out.getvalue(), err.getvalue()):
        assert "forged" in text
        require_harmless(re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\r", "", text).replace("\x1b[31m", "?"))
        assert "\x1b[31mx" not in text and "\x9b" not in text


@pytest.mark.parametrize("written", ["report.xml", "page.html", "tree.html", "tree.svg"])
def test_in_files(written: str, folder: Path) -> None:
    """JUnit's XML, pages and pictures hold no control character, and no markup from a name."""
    line = {
        "report.xml": "check . --samples 1 --junit report.xml",
        "page.html": "check evil.onnx --samples 1 --report page.html",
        "tree.html": "inspect evil.onnx --html tree.html",
        "tree.svg": "inspect evil.onnx --svg tree.svg",
    }[written]
    run(line)
    text = (folder / written).read_text(encoding="utf-8")
    assert "forged" in text
    for place in re.finditer("forged", text):
        around = text[max(0, place.start() - 200) : place.end() + 200]
        assert all(c.isprintable() or c == "\n" for c in around)
        assert "\nOK: forged" not in around and "[error]</script>" not in around
    for data in re.findall("<script[^>]*json[^>]*>(.*)</script>", text):
        assert "forged" in data
        require_harmless(data.encode().decode("raw_unicode_escape"))


def test_errors_are_lines() -> None:
    """An error keeps its own lines, also in another process."""
    error = BridgeError(f"a{BAD}", "b")
    assert str(error).split("\n") == [printable(f"a{BAD}"), "b"] == list(error.args)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    long = BridgeError("x" * 10_000, *map(str, range(1_000)))
    assert str(pickle.loads(pickle.dumps(long))) == str(long) and len(str(long)) < 2_000
    again = pickle.loads(pickle.dumps(UnsupportedError("IR", [])))
    assert str(again) == "the model cannot be written as IR:"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("plain é 名", "plain é 名"),
        ("C:\\new", "C:\\new"),
        ("a\nb\r\x1b[2J\x9b", "a\\nb\\r\\x1b[2J\\x9b"),
        ("a\u202eb\u2028c\u2066\ufeff\ud800", "a\\u202eb\\u2028c\\u2066\\ufeff\\ud800"),
        ("  ::error::x", "  \\x3a:error::x"),
        ("a::b ##[error]", "a::b \\x23#[error]"),
    ],
)
def test_printable(line: str, shown: str) -> None:
    assert printable(line) == shown == printable(shown) == text_of([line])
