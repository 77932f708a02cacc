"""The command line: its files and output, its exit codes, and the time to start."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
import typer.core

import bridge.operators as operators_package
import bridge.quirks as quirks_package
from bridge import convert, load
from bridge.cli.app import command_line
from bridge.neutral.inference import _inferences, _known_values
from bridge.operators import legalizations, load_all, readers
from bridge.operators.elementwise.broadcasting import BROADCASTING
from bridge.show.coverage import coverage
from bridge.vocabulary import families, families_of_type, family_of, operators
from tests.support.command_line import bridge
from tests.support.model_files import IR_FILES, ONNX_FILES
from tests.support.processes import process

MODELS = Path(__file__).parents[2] / "roundtrip_models"
IF = MODELS / "if_nested_captures_every_scope.onnxtxt"
IR = MODELS / "if_nested.xml"
PRUNED = MODELS / "if_branches_differ_in_rank_before_conv.onnxtxt"
HEAD = '<ir_version: 8, opset_import: ["": 17]>'


def save(path: Path, text: str) -> Path:
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def test_both_ways(tmp_path: Path) -> None:
    ir, back = tmp_path / "model.xml", tmp_path / "model.onnx"
    there = bridge("convert", IF, ir)
    assert (there.code, there.err) == (0, "")
    assert there.out.startswith(f"wrote {ir} (")
    assert f" and {ir.with_suffix('.bin')} (" in there.out
    assert bridge("convert", ir, back, "--opset", "18").code == 0
    model = onnx.load(back)
    onnx.checker.check_model(model, full_check=True)
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", 18)]


@pytest.mark.parametrize("suffix", [".onnx", ".xml"])
def test_onto_itself(suffix: str, tmp_path: Path) -> None:
    model = tmp_path / f"model{suffix}"
    assert bridge("convert", IF, model).code == 0
    before = model.read_bytes()
    refused = bridge("convert", model, model)
    assert refused.code == 2 and "--force" in refused.err
    assert bridge("convert", model, model, "--force").code == 0
    assert model.read_bytes() == before


def test_onto_itself_with_external_data(tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    weights = np.arange(4096, dtype=np.float32)
    save(model, f"{HEAD} g (float[4096] x) => (float[4096] y) {{ y = Add (x, w) }}")
    proto = onnx.load(model)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(proto, model)
    for option in ("--external-data", "--external-data", "--no-external-data"):
        assert bridge("convert", model, model, option, "--force").code == 0
        (tensor,) = onnx.load(model).graph.initializer
        np.testing.assert_array_equal(onnx.numpy_helper.to_array(tensor), weights)
    assert model.stat().st_size > weights.nbytes


def test_what_stood_at_the_destination(tmp_path: Path) -> None:
    """A link stays a link. Permissions stay, and so do data that the new model does not need."""
    proto = onnx.parser.parse_model(f"{HEAD} g (float[9] x) => (float[9] y) {{ y = Sub (x, w) }}")
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(9, np.float32), "w"))
    onnx.save(proto, tmp_path / "small.onnx")
    store, links = tmp_path / "store", tmp_path / "links"
    store.mkdir(), links.mkdir()
    target, data = links / "model.onnx", links / "model.onnx.data"
    (store / "blob").write_text("old")
    (store / "blob").chmod(0o640)
    target.symlink_to(store / "blob")
    assert bridge("convert", IF, target).code == 0
    assert target.is_symlink() and onnx.load(store / "blob").graph.node
    assert (store / "blob").stat().st_mode & 0o777 == 0o640

    data.write_text("of somebody else")
    assert bridge("convert", IF, target).code == 0
    assert data.exists()
    onnx.save(proto, target, save_as_external_data=True, location=data.name, size_threshold=0)
    finished = bridge("convert", tmp_path / "small.onnx", target, "--no-external-data")
    assert finished.code == 0 and "model.onnx.data: stays" in finished.out
    assert sorted(path.name for path in (*links.iterdir(), *store.iterdir())) == [
        "blob",
        "model.onnx",
        "model.onnx.data",
    ]


@pytest.mark.parametrize("error", [OSError(28, "full"), KeyboardInterrupt()])
def test_an_interrupted_replacement(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, rename = tmp_path / "model.xml", os.rename
    assert bridge("convert", IF, model).code == 0
    before = [path.read_bytes() for path in sorted(tmp_path.iterdir())]

    def failing(old: Path, new: Path) -> None:
        if old.suffix == new.suffix == ".xml":  # the last file to move into place
            raise error
        rename(old, new)

    monkeypatch.setattr(os, "rename", failing)
    for path in (model, tmp_path / "new.xml"):
        assert bridge("convert", PRUNED, path).code in (2, 130)
        assert [path.read_bytes() for path in sorted(tmp_path.iterdir())] == before


def test_ranges_are_lost_in_onnx(tmp_path: Path) -> None:
    model = save(tmp_path / "in.onnx", f"{HEAD} g (float[n] x) => (float[n] y) {{ y = Neg (x) }}")
    finished = bridge("convert", model, tmp_path / "out.onnx", "--input-shape", "x=[2..4]")
    assert 'note: the input "x": ONNX has no ranges of sizes, so that 2..4' in finished.out


def test_quiet(tmp_path: Path) -> None:
    finished = bridge("convert", PRUNED, tmp_path / "model.xml", "--quiet")
    assert (finished.code, finished.out, finished.err) == (0, "", "")


def test_pruning_is_told(tmp_path: Path) -> None:
    text = f"""{HEAD} g (bool c, float[1, 8] x) => (float[1, 2, 6] y)
    <float[2, 1, 3] w = {{1, 0, -1, 0.5, 2, 0.5}}, int64[1] zero = {{0}}> {{
      batched = If (c) <
        then_branch = t () => (float[1, 1, 8] a) {{ a = Unsqueeze (x, zero) }},
        else_branch = e () => (float[1, 8] b) {{ b = Identity (x) }}
      >
      y = Conv (batched, w)
    }}"""
    model = save(tmp_path / "model.onnx", text)
    finished = bridge("convert", model, tmp_path / "model.xml")
    assert '\npruned: graph / If "batched": its else_branch ' in finished.out


def test_debug_verifies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def verify(graph: object, where: str = "") -> None:
        seen.extend([where] if where else [])

    # Importing the function by name gives the right object.
    assert bridge("convert", IF, tmp_path / "model.xml").code == 0
    monkeypatch.setattr("bridge.neutral.verify.verify", verify)
    monkeypatch.setattr("bridge.library.api.DEBUG", False)
    assert bridge("convert", IF, tmp_path / "model.xml").code == 0
    assert not seen
    assert bridge("convert", IF, tmp_path / "model.xml", "--debug").code == 0
    assert seen[0] == "after reading: graph"
    assert len(seen) > 3


def test_input_shape(tmp_path: Path) -> None:
    model = save(
        tmp_path / "model.onnx", f"{HEAD} g (float[a, b] x) => (float[a, b] y) {{ y = Neg (x) }}"
    )
    out = tmp_path / "out.onnx"
    assert bridge("convert", model, out, "--input-shape", "x=[3, n]").code == 0
    dims = onnx.load(out).graph.input[0].type.tensor_type.shape.dim
    assert (dims[0].dim_value, dims[1].dim_param) == (3, "n")
    assert bridge("convert", model, tmp_path / "out.xml", "--input-shape", "x=[?,2..8]").code == 0
    assert 'shape="?,2..8"' in (tmp_path / "out.xml").read_text()


def test_weights_under_another_name(tmp_path: Path) -> None:
    ir = tmp_path / "model.xml"
    assert bridge("convert", MODELS / "topk_i64.xml", ir).code == 0
    weights = ir.with_suffix(".bin").rename(tmp_path / "other.bin")
    assert bridge("convert", ir, tmp_path / "out.onnx").code == 2
    assert bridge("convert", ir, tmp_path / "out.onnx", "--weights", weights).code == 0


def test_check_agrees(tmp_path: Path) -> None:
    ir = tmp_path / "model.xml"
    finished = bridge("convert", IF, ir, "--check")
    assert finished.code == 0
    assert "\nOK: " in finished.out
    assert bridge("check", IF, ir, "--quiet").out == ""


def test_check_differs(tmp_path: Path) -> None:
    text = f"{HEAD} g (float[2] x) => (float[2] y) {{ y = %s (x) }}"
    one, other = (save(tmp_path / f"{op}.onnx", text % op) for op in ("Sin", "Cos"))
    for quiet in ((), ("--quiet",)):
        finished = bridge("check", one, other, *quiet)
        assert finished.code == 1
        assert finished.out.startswith("NOT OK: ")


def test_check_that_cannot_compare(tmp_path: Path) -> None:
    """A failure to compare is an error rather than a difference."""
    (tmp_path / "garbage.onnx").write_bytes(b"garbage")
    custom = '<ir_version: 8, opset_import: ["": 17, "my": 1]> g (float x) => (float y) %s'
    (tmp_path / "custom.onnxtxt").write_text(custom % "{ y = my.Foo (x) }")
    for name, says in (("garbage.onnx", "is not an ONNX model"), ("custom.onnxtxt", "my::Foo")):
        finished = bridge("check", tmp_path / name)
        assert (finished.code, finished.out) == (2, "")
        assert finished.err.startswith("Error: no engine loads it: ") and says in finished.err


def test_check_with_ranges(tmp_path: Path) -> None:
    text = f"{HEAD} g (float[n, m] x) => (float[n, m] y) {{ y = Neg (x) }}"
    model = save(tmp_path / "model.onnx", text)
    for suffix in (".xml", ".onnx"):
        shape = ("--input-shape", "x=[7..9,?]", "--check")
        assert bridge("convert", model, tmp_path / f"out{suffix}", *shape).code == 0
    assert bridge("check", model, "--size", "n=7..9").code == 0


def test_check_without_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for arguments in (("check", IF), ("convert", IF, tmp_path / "model.xml", "--check")):
        finished = bridge(*arguments)
        assert finished.code == 2
        assert "pip install 'onnx-openvino-bridge[check]'" in finished.err
    assert not list(tmp_path.iterdir())


def test_check_with_sizes(tmp_path: Path) -> None:
    model = save(
        tmp_path / "model.onnx",
        f"{HEAD} g (float[n, m] x) => (float[k] y) <int64[1] to = {{6}}> {{ y = Reshape (x, to) }}",
    )
    assert bridge("check", model, "--size", "n=2", "--size", "m=3").code == 0
    wrong = bridge("check", model, "--size", "n")
    assert (wrong.code, wrong.err.startswith("Error: --size n: ")) == (2, True)
    shape = ("--input-shape", "x=[2,3]", "--check")
    assert bridge("convert", model, tmp_path / "out.xml", *shape).code == 0


def test_inspect() -> None:
    text = bridge("inspect", IF).out
    assert text.startswith(f"{IF}: ONNX, operator set ")
    assert '  If "' in text
    description = json.loads(bridge("inspect", IF, "--json").out)
    assert description["format"] == "onnx"
    assert description["operators"]["If"] == 3
    (outer,) = description["control_flow"]
    assert [body["role"] for body in outer["bodies"]] == ["then_branch", "else_branch"]
    assert outer["bodies"][0]["inputs"][0]["port"] == "invariant"
    assert bridge("inspect", IF, "--graph").out.startswith("graph (%p: bool[]")


def test_scripts_read_json_alone(tmp_path: Path) -> None:
    drawn = bridge("inspect", IF, "--json", "--svg", tmp_path / "tree.svg")
    assert json.loads(drawn.out)["format"] == "onnx" and (tmp_path / "tree.svg").exists()


@pytest.mark.parametrize("path", [*ONNX_FILES, *IR_FILES], ids=lambda path: path.name)
def test_inspect_takes_every_model(path: Path) -> None:
    assert bridge("inspect", path).code == 0
    assert bridge("inspect", path, "--json").code == 0


def test_ops() -> None:
    lines = bridge("ops", "if", "relu").out.splitlines()
    assert lines[0] == "activation:"
    assert lines[1].split()[:3] == ["operator", "ONNX", "IR"]
    assert lines[2].split()[0] == "Relu"
    assert lines[4] == "control:"
    missing = bridge("ops", "--missing").out
    assert "StringTensorPack" in missing and "\nRelu " not in missing
    both = bridge("ops", "NonMaxSuppression").out
    assert "\nir::NonMaxSuppression " in both and "\nNonMaxSuppression " in both
    assert "Conv " in bridge("ops", "convolution").out
    unknown = bridge("ops", "Nonesuch")
    assert (unknown.code, "Nonesuch" in unknown.err) == (2, True)


def test_ops_quirks() -> None:
    listed = bridge("ops", "--quirks").out.split("\n\n")
    assert len(listed) - 1 == len({*quirks_package.order()})
    for quirk in quirks_package.by_name():
        (told,) = (text for text in listed if quirk.symptom in text)
        assert f"{quirk.engine} {quirk.releases}" in told
        assert quirk.issue in told and quirk.cost in told
        (file,) = (line.split()[-1] for line in told.splitlines() if "file:" in line)
        assert (Path(__file__).parents[2] / file).exists()
    assert bridge("ops", "--quirks", "Relu").code == 2


def test_the_version_of_a_tree_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_none(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", of_none)
    assert bridge("--version").out == "bridge (not installed)\n"


def _family_of_module(function: Callable[..., object]) -> str:
    """The folder of bridge/operators/ with a function; "control" for the graph's own operators."""
    parts = function.__module__.split(".")
    return parts[2] if parts[1] == "operators" else "control"


def test_what_is_registered_stands_in_the_family_of_its_row() -> None:
    load_all()
    for (_, op), rule in legalizations.items():
        assert _family_of_module(rule) == family_of(op), op
    for registry in (_inferences, _known_values):
        for op, function in registry.items():
            shared = function.__module__ == "bridge.neutral.inference"
            assert shared or _family_of_module(function) == family_of(op), op
    for (format, type), found in readers.items():
        for reader in found:
            assert _family_of_module(reader.rule) in families_of_type(format, type), type


def test_every_type_that_broadcasts_has_the_reader_for_other_kinds() -> None:
    assert {
        spelling.type: operator.name
        for operator in operators().values()
        for spelling in operator.ir
        if "auto_broadcast" in spelling.fixed
    } == BROADCASTING


def test_every_folder_of_operators_is_a_family() -> None:
    root = Path(operators_package.__file__).parent
    folders = {path.parent.name for path in root.glob("*/__init__.py")}
    assert folders <= set(families())


def test_every_operator_has_one_line() -> None:
    names = [line.name for line in coverage()]
    assert len(names) == len(set(names))
    assert set(operators()) <= set(names)


@pytest.mark.parametrize("arguments", [["--help"], ["convert", "--help"], ["ops", "--help"]])
def test_starts_without_what_it_does_not_use(arguments: list[str]) -> None:
    code = (
        "import sys, bridge.cli\n"
        "try: bridge.cli.main(sys.argv[1:])\n"
        "finally: print('loaded', *sys.modules)"
    )
    start = time.perf_counter()
    finished = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    seconds = time.perf_counter() - start
    loaded = set(finished.stdout.splitlines()[-1].split()[1:])
    heavy = {
        "onnx",
        "numpy",
        "lxml",
        "google",
        "ml_dtypes",
        "openvino",
        "onnxruntime",
    }
    assert "typer" in loaded and not loaded & heavy
    assert seconds < 5  # far more than it takes; only a gross slowdown fails on a busy machine


@pytest.mark.parametrize("further", [[], ["-q"], ["--quiet"]])
def test_two_paths_are_read_as_typer_reads_them(further: list[str]) -> None:
    """This works without pydantic. Typer imports it for any value, which takes a fifth of a small
    conversion."""
    command = command_line("convert").commands["convert"]
    given = ["a.onnx", "b.xml", *further]
    read, wanted = (command.make_context("convert", [], resilient_parsing=True) for _ in range(2))
    command.parse_args(read, list(given))
    typer.core.TyperCommand.parse_args(command, wanted, list(given))
    assert {name: value or None for name, value in read.params.items()} == {
        name: value or None for name, value in wanted.params.items() if name != "help"
    }


def test_a_conversion_of_two_paths_imports_no_validators(tmp_path: Path) -> None:
    code = (
        "import sys, bridge.cli\n"
        "try: bridge.cli.main(sys.argv[1:])\n"
        "finally: print(*{name.partition('.')[0] for name in sys.modules})"
    )
    command = [sys.executable, "-c", code, "convert", IF, tmp_path / "model.xml"]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not {"pydantic", "openvino", "onnxruntime"} & {*finished.stdout.split()}


@pytest.mark.parametrize("command", ["convert", "check", "inspect", "ops"])
def test_help_has_boxes_and_examples(command: str) -> None:
    for arguments in ((command, "--help"), ("-h",)):
        finished = bridge(*arguments)
        assert (finished.code, finished.err) == (0, "")
        assert "╭─ Options ─" in finished.out and command in finished.out
    assert f"\n   bridge {command}" in bridge(command, "-h").out.partition("Examples:")[2]
    nothing = bridge()
    assert nothing.code == 2 and "╭─ Commands ─" in nothing.out


COMPLETIONS = {
    "bash": lambda given: {"COMP_WORDS": given, "COMP_CWORD": str(given.count(" "))},
    "zsh": lambda given: {"_TYPER_COMPLETE_ARGS": given},
    "fish": lambda given: {
        "_TYPER_COMPLETE_ARGS": given, "_TYPER_COMPLETE_FISH_ACTION": "get-args"
    },
}  # fmt: skip


@pytest.mark.parametrize("shell", COMPLETIONS)
def test_completion(shell: str) -> None:
    def ask(given: str, what: str = "complete") -> str:
        environment = {**os.environ, "PYTHONPATH": str(MODELS.parent)}
        environment |= {"_BRIDGE_COMPLETE": f"{what}_{shell}", **COMPLETIONS[shell](given)}
        command = [sys.executable, "-m", "bridge"]
        finished = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        )
        return finished.stdout

    assert "_BRIDGE_COMPLETE=complete_" in ask("bridge ", "source")
    assert "convert" in ask("bridge con") and "inspect" not in ask("bridge con")
    assert "--keep-branches" in ask("bridge convert a.onnx b.xml --keep")
    assert "NPU" in ask("bridge convert a.onnx b.xml --device N")


def test_options_stand_anywhere_and_are_not_abbreviated(tmp_path: Path) -> None:
    for number, arguments in enumerate((("-q", IF), (IF, "--quiet"))):
        finished = bridge("convert", *arguments, tmp_path / f"{number}.xml")
        assert (finished.code, finished.out) == (0, "")
    finished = bridge("convert", IF, tmp_path / "model.xml", "--compress")
    assert (finished.code, finished.out) == (2, "")
    assert "No such option: --compress; did you mean --compress-to-fp16?" in finished.err
    assert "Usage: bridge convert " in finished.err
    assert "'bridge convert --help' says more" in finished.err


def test_conversion_imports_no_engine(tmp_path: Path) -> None:
    code = (
        "import sys, bridge\n"
        "bridge.convert(sys.argv[1], sys.argv[2])\n"
        "bridge.convert(sys.argv[2], sys.argv[3])\n"
        "print(*{n.partition('.')[0] for n in sys.modules})"
    )
    arguments = [str(IF), str(tmp_path / "a.xml"), str(tmp_path / "b.onnx")]
    finished = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    assert not {"openvino", "onnxruntime", "torch", "rich"} & set(finished.stdout.split())


@pytest.mark.parametrize(
    ("source", "suffix", "spared"), [(IF, "onnx", "lxml"), (IR, "xml", "onnx")]
)
def test_one_format_does_not_import_the_other(
    source: Path, suffix: str, spared: str, tmp_path: Path
) -> None:
    code = "import sys, bridge; bridge.convert(*sys.argv[1:]); print(*sys.modules)"
    arguments = [str(source), str(tmp_path / f"a.{suffix}")]
    finished = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    assert spared not in finished.stdout.split()


def test_model_and_weights_behind_links(tmp_path: Path) -> None:
    """Model caches keep files under other names and link to them."""
    text = f"{HEAD} g (float[4096] x) => (float[4096] y) {{ y = Add (x, w) }}"
    proto = onnx.parser.parse_model(text)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(4096, np.float32), "w"))
    store, links = tmp_path / "store", tmp_path / "links"
    store.mkdir(), links.mkdir()
    onnx.save(proto, store / "model.onnx")
    for source, destination in (("model.onnx", "again.onnx"), ("again.onnx", "model.xml")):
        arguments = ["--external-data"] if destination.endswith(".onnx") else []
        assert bridge("convert", store / source, store / destination, *arguments).code == 0
    for name in ("again.onnx", "again.onnx.data", "model.xml", "model.bin"):
        (links / name).symlink_to((store / name).rename(store / f"{len(name)}{name[::-1]}"))
    for name in ("again.onnx", "model.xml"):
        assert bridge("convert", links / name, tmp_path / "out.onnx").code == 0
        (tensor,) = onnx.load(tmp_path / "out.onnx").graph.initializer
        assert onnx.numpy_helper.to_array(tensor).sum() == 4096


@pytest.mark.skipif(sys.platform == "win32", reason="shells and devices of POSIX")
@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        ("ops | true", 141, ""),
        ("ops --help | true", 141, ""),
        (f"inspect {IF} --json | true", 141, ""),
        ("inspect nowhere.onnx 2>&1 >/dev/null | true", 2, ""),
        ("ops >/dev/full", 2, "Error: the output: No space left on device\n"),
        ("ops Clip >ops.txt; cat ops.txt", 0, ""),
    ],
)
def test_output_that_goes_nowhere(command: str, code: int, says: str, tmp_path: Path) -> None:
    finished = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{sys.executable} -m bridge {command}"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONPATH": str(MODELS.parent)},
        capture_output=True,
        check=False,
    )
    assert (finished.returncode, finished.stderr.decode()) == (code, says)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("swallow", [False, True], ids=["in_order", "by_force"])
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_stopped_conversion_leaves_nothing_behind(
    name: str, swallow: bool, tmp_path: Path
) -> None:
    """It stops within a second, even if the running code blocks the signal."""
    code = (
        "import sys, time, bridge.ir_format.backend, bridge.cli\n"
        "def stuck(*_):\n"
        "    print('stuck', flush=True)\n"
        f"    while {swallow}:\n"
        "        try: time.sleep(60)\n"
        "        except BaseException: pass\n"
        "    time.sleep(60)\n"
        "bridge.ir_format.backend.write = stuck\n"
        "bridge.cli.main()"
    )
    command = [sys.executable, "-c", code, "convert", IF, tmp_path / "model.xml"]
    number = getattr(signal, name)
    with process(command) as started:
        assert started.stdout is not None and started.stdout.readline() == "stuck\n"
        assert list(tmp_path.iterdir())
        began = time.monotonic()
        started.send_signal(number)
        assert started.wait(30) == 128 + number
    assert time.monotonic() - began < 1.5
    assert not list(tmp_path.iterdir())


STUCK_ENGINE = """
import bridge.check, os, time
from bridge.check.isolation import Worker
def check(*_, **__):
    worker = Worker()
    worker.call(os.getpid)
    print("stuck", flush=True)
    worker.call(time.sleep, 60)
bridge.check.check = check
import bridge.cli
bridge.cli.main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_check_is_stopped_while_an_engine_works(name: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(STUCK_ENGINE)
    with process([sys.executable, tmp_path / "script.py", "check", IF]) as started:
        assert started.stdout is not None and started.stdout.readline() == "stuck\n"
        started.send_signal(getattr(signal, name))
        assert started.wait(30) == 128 + getattr(signal, name)


@pytest.mark.skipif(sys.platform == "win32", reason="terminals of POSIX")
def test_a_terminal_shows_what_is_being_done() -> None:
    import pty

    leader, follower = pty.openpty()
    with process(
        [sys.executable, "-m", "bridge", "check", IF],
        stderr=follower,
        env={**os.environ, "COLUMNS": "300", "TERM": "xterm", "PYTHONPATH": str(MODELS.parent)},
    ) as started:
        os.close(follower)
        shown = b""
        with contextlib.suppress(OSError):  # the terminal is gone with the process
            while data := os.read(leader, 1 << 16):
                shown += data
        out, _ = started.communicate()
    assert started.returncode == 0 and out.startswith("OK: ")
    phases = ("converting", "loading", "seeking inputs", "comparing")
    assert any(f"checking {IF}: {phase}" in shown.decode() for phase in phases)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(12, "Cannot allocate memory"),
        ImportError("x.so: failed to map segment from shared object"),
        RuntimeError("std::bad_alloc"),
    ],
    ids=repr,
)
def test_a_lack_of_memory_is_no_defect(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("bridge.convert", fail, raising=False)
    finished = bridge("convert", IF, tmp_path / "model.xml")
    assert finished.code == 2
    assert finished.err.startswith("Error: there is not enough memory")


def test_what_is_done_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG", "bridge"):
        bridge("convert", IF, tmp_path / "model.xml")
    lines = {(record.levelname, record.getMessage()) for record in caplog.records}
    assert ("INFO", f"wrote {tmp_path / 'model.xml'}") in lines
    assert ("DEBUG", f"{tmp_path / 'model.xml'}: legalize done") in lines


@pytest.mark.parametrize(
    ("options", "written"),
    [
        (("out.xml", "--input-shape", "x[2,-1]"), "out.xml"),
        (("out.xml", "--input-shape", "x[2,3],c[]"), "out.xml"),
        (("--output", "out.xml"), "out.xml"),
        (("out.xml", "--output", "y"), "out.xml"),
        (("folder",), "folder/model.xml"),
    ],
)
def test_habits_of_other_converters(
    options: tuple[str, ...], written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    text = """<ir_version: 10, opset_import: ["": 21]> g (float[n,m] x, bool c) => (float[n,m] y) {
        y = If (c) <then_branch = a () => (float[n,m] t) { t = Neg (x) },
                    else_branch = b () => (float[n,m] e) { e = Exp (x) }> }"""
    onnx.save(onnx.parser.parse_model(text), "model.onnx")
    finished = bridge("convert", "model.onnx", *options)
    assert finished.code == 0, finished.err
    (x, *_) = load(tmp_path / written).graph.inputs
    assert (x.dims[0] == 2) == ("--input-shape" in options)


def test_the_command_writes_what_the_function_does(tmp_path: Path) -> None:
    source = save(
        tmp_path / "a.onnx",
        f"""{HEAD} g (float[N,2] x, bool c) => (float[K,2] y) {{ y = Loop ("", c, x) <
          body = b (int64[1] i, bool o, float[N,2] s) => (bool o, float[N,2] t) {{
            t = Add (s, s) }}> }}""",
    )
    bridge("convert", source, tmp_path / "a.xml")
    convert(source, tmp_path / "b.xml")
    assert (tmp_path / "a.xml").read_bytes() == (tmp_path / "b.xml").read_bytes()
