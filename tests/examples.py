"""`python -m tests.examples`: runs every command and example of README and `docs/`.

Models are made for each command: with the inputs, shapes and outputs that its options name. A line
that is no command of Bridge is told, and left out. `--silero FILE` is the model of that name, whose
lines are left out without it.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import onnx
import typer
from onnx import TensorProto, helper

import bridge
from tests.docs import PROJECT, pages

BLOCK = re.compile(r"^```(sh|python|)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands(page: Path) -> Iterator[str]:
    """The commands of a page, without prompts and comments."""
    for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        for line in text.splitlines() if kind != "python" else ():
            line = line.removeprefix("$ ") if kind == "" else line
            if kind == "sh" or re.match(r"bridge (convert|check|inspect|ops) [^\[]*$", line):
                yield re.sub(r"\s+#.*$", "", line)


def blocks(page: Path) -> Iterator[str]:
    """The code in Python of a page."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    yield from (text for kind, text in found if kind == "python")


def given(command: str, option: str) -> dict[str, str]:
    """What a command gives for names with an option, `--range x=0..1`."""
    words = shlex.split(command)
    texts = [words[at + 1] for at, word in enumerate(words[:-1]) if word == option]
    parts = [one for text in texts for one in re.split(r"(?<=\]),", text)]
    return dict(part.split("=", 1) for part in parts if "=" in part)


def model_for(command: str) -> onnx.ModelProto:
    """A model that has what the options of a command name; an If on its data."""
    shapes = {
        name: [None if "?" in dim else 2 if dim in ("n", "h") else int(dim) for dim in dims]
        for name, text in given(command, "--input-shape").items()
        for dims in [text.strip("[]").split(",")]
    }
    for option in ("--range", "--mean", "--scale"):
        size = "batch" if option == "--range" else 1
        shapes |= {name: [size, 3, 8, 8] for name in given(command, option) if name not in shapes}
    if not shapes:
        shapes = {"x": [1 if "NPU" in command else "batch", 4]}
    floats = {
        name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [d and None for d in dims])
        if "--input-shape" in command
        else helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
        for name, dims in shapes.items()
    }
    first = next(iter(floats))
    nodes = [
        helper.make_node("ReduceMax", [first], ["most"], keepdims=0),
        helper.make_node("Constant", [], ["half"], value_float=0.5),
        helper.make_node("Greater", ["most", "half"], ["above"]),
    ]
    branches = {
        f"{branch}_branch": helper.make_graph(
            [helper.make_node(op, [first], [branch])],
            branch,
            [],
            [helper.make_tensor_value_info(branch, TensorProto.FLOAT, None)],
        )
        for branch, op in (("then", "Sin"), ("else", "Neg"))
    }
    nodes.append(helper.make_node("If", ["above"], ["features"], **branches))
    inputs, terms = list(floats.values()), ["features"]
    for name in given(command, "--value"):
        inputs.append(helper.make_tensor_value_info(name, TensorProto.INT64, []))
        nodes.append(helper.make_node("Cast", [name], [f"{name}_cast"], to=TensorProto.FLOAT))
        terms.append(f"{name}_cast")
    for name in list(floats)[1:]:
        nodes.append(helper.make_node("ReduceSum", [name], [f"{name}_sum"], keepdims=0))
        terms.append(f"{name}_sum")
    outputs = sorted({"scores"} | given(command, "--rtol").keys())
    nodes += [helper.make_node("Sum" if len(terms) > 1 else "Abs", terms, [n]) for n in outputs]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph(nodes, "g", inputs, results)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def decoder() -> onnx.ModelProto:
    """A decoder of one layer, with a cache."""
    return onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 17]>
        g (int64[batch, length] input_ids, int64[batch, total] attention_mask,
           float[batch, 1, past, 4] past_key_values_0_key)
          => (float[batch, length, 4] logits, float[batch, 1, total, 4] present_0_key)
        <float[3, 4] table = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
         int64[1] one = {1}, int64[1] two = {2}> {
          words = Gather (table, input_ids)
          heads = Unsqueeze (words, one)
          present_0_key = Concat <axis = 2> (past_key_values_0_key, heads)
          all = ReduceSum <keepdims = 0> (present_0_key, two)
          logits = Add (words, all)
        }"""
    )


def furnish(folder: Path, command: str, silero: Path | None) -> None:
    """Puts the files that a command reads into a folder."""
    made = model_for(command)
    onnx.save(made, folder / "model.onnx")
    if not given(command, "--input-shape"):
        bridge.convert(folder / "model.onnx", folder / "model.xml")
    for name in ("decoder.onnx", "exported/model.onnx"):
        (folder / name).parent.mkdir(exist_ok=True)
        onnx.save(decoder(), folder / name)
    (folder / "models").mkdir()
    onnx.save(made, folder / "models" / "a.onnx")
    feeds = {"x": np.ones((2, 4), np.float32)}
    (folder / "recordings").mkdir()
    for path in ("recorded.npz", "recordings/0.npz"):
        np.savez(folder / path, **feeds)
    shutil.copytree(PROJECT / "roundtrip_models", folder / "roundtrip_models")
    if silero is not None:
        shutil.copy(silero, folder / "silero_vad.onnx")
        if "vad.xml" in command.split()[2:3]:
            bridge.convert(silero, folder / "vad.xml")
        if command.split()[1] == "check":
            fixed = {"input": [1, 512], "state": [2, 1, 128]}
            vad = folder / "vad16k.onnx"
            bridge.convert(silero, vad, values={"sr": 16000}, input_shapes=fixed)
    if "check.json" in command:
        call = f"{sys.executable} -m bridge check model.onnx --json > check.json"
        subprocess.run(call, shell=True, cwd=folder, check=True)


def is_other(command: str, silero: Path | None) -> str:
    """Why a line is left out; "" if it runs."""
    if not command.startswith("bridge "):
        return "is no command of Bridge"
    if "$(" in command:
        return "is for an installed wheel, which a test has"
    if silero is None and re.search(r"silero|vad", command):
        return "needs --silero FILE"
    return ""


def run(command: str, silero: Path | None) -> str:
    """What is wrong with a command, "" if nothing: it may find a planted difference."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        furnish(folder, command, silero)
        call = re.sub(r"^bridge ", f"{shlex.quote(sys.executable)} -m bridge ", command)
        done = subprocess.run(call, shell=True, cwd=folder, capture_output=True, text=True)
    planted = "if_output_is_outer_initializer" in command or "--reduce" in command
    return "" if done.returncode == 0 or (planted and done.returncode == 1) else done.stderr[-500:]


_IMPORTS = "import bridge, numpy as np, onnx, openvino\nfrom bridge.check import check\n"
_SEQUENCES = """
onnx.save(onnx.parser.parse_model('''<ir_version: 9, opset_import: ["" : 17]>
g (seq(float[N]) s, optional(float[N]) o) => (float[M] y, bool has) {
  y = ConcatFromSequence <axis = 0> (s)
  has = OptionalHasElement (o) }'''), "model.onnx")
array, other = np.ones(2, np.float32), np.ones(3, np.float32)
onnx.save(onnx.parser.parse_model('''<ir_version: 9, opset_import: ["" : 17, "ai.onnx.ml" : 2]>
g (string[N, 1] color) => (string[N, 1] output_label) {
  n = ai.onnx.ml.LabelEncoder <keys_strings = ["red", "green"], values_int64s = [0, 1]> (color)
  output_label = ai.onnx.ml.LabelEncoder <keys_int64s = [0, 1], values_strings = ["a", "b"]> (n)
}'''), "classifier.onnx")
"""
_PICTURES = """
from tests.examples import model_for
onnx.save(model_for("bridge check model.onnx --range image=0..1"), "model.onnx")
x = np.ones((2, 3, 8, 8), np.float32)
"""
PREPARED = {"sequences.md": _IMPORTS + _SEQUENCES, "checks.md": _IMPORTS + _PICTURES}
"""What the examples of a page take as known."""


def run_python(page: Path) -> Iterator[tuple[str, str]]:
    """The blocks of a page that fail, with the error. They run in one folder, one after another.
    A block whose packages are not installed is told, and left out."""
    with tempfile.TemporaryDirectory() as name:
        furnish(Path(name), "bridge check model.onnx", None)
        for text in blocks(page):
            words = [sys.executable, "-c", PREPARED.get(page.name, "") + text]
            done = subprocess.run(words, cwd=name, capture_output=True, text=True)
            error = done.stderr.strip()[-500:]
            last = error.rpartition("\n")[2]
            if "No module named" in last:
                print(f"{page.name}: left out ({last})")
            elif done.returncode:
                yield text, error


def main(silero: Annotated[Path | None, typer.Option()] = None) -> None:
    """Runs all, and ends with 1 if one fails."""
    failed = 0
    silero = None if silero is None else silero.absolute()
    for page in pages():
        for command in dict.fromkeys(commands(page)):
            why = is_other(command, silero)
            try:
                wrong = "" if why else run(command, silero)
            except Exception:
                wrong = traceback.format_exc()[-500:]
            failed += bool(wrong)
            print(f"{page.name}: {f'left out ({why})' if why else wrong or 'ok'}: {command}")
        for text, wrong in run_python(page):
            failed += 1
            print(f"{page.name}: {wrong}\n{text}")
    sys.exit(f"{failed} failed" if failed else 0)


if __name__ == "__main__":
    typer.run(main)
