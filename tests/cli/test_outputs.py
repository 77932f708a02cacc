"""Options never overwrite a file that the command reads. They replace a file of another kind with
`--force` alone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest

import bridge as library
from bridge.check import check
from bridge.testing import assert_round_trip
from tests.support.command_line import bridge

READ = "is read, and would be overwritten"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with external data, one in a page's name, its IR twice, inputs, and links."""
    made = tmp_path_factory.mktemp("models")
    node = onnx.helper.make_node("Add", ["x", "w"], ["y"])
    ends = [onnx.helper.make_tensor_value_info(name, 1, [300]) for name in "xy"]
    weights = onnx.numpy_helper.from_array(np.ones(300, np.float32), "w")
    graph = onnx.helper.make_graph([node], "g", ends[:1], ends[1:], [weights])
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])
    onnx.save(proto, made / "whole.onnx")
    library.convert(made / "whole.onnx", made / "m.onnx", external_data=True)
    for name in ("m.xml", "small-other.xml"):
        library.convert(made / "m.onnx", made / name)
    np.savez(made / "small.npz", x=np.ones(300, np.float32))
    for name, data in (("p.onnx", "p.html"), ("r.onnx", "s.bin")):
        proto = onnx.load(made / "whole.onnx")
        onnx.save(proto, made / name, save_as_external_data=True, location=data, size_threshold=0)
    shutil.copy(made / "whole.onnx", made / "s.onnx")
    (made / "s.xml").write_text("<net/>")
    np.save(made / "x.npy", np.ones(300, np.float32))
    (made / "array.xml").symlink_to("x.npy")
    for suffix in ("xml", "html", "svg"):
        (made / f"link.{suffix}").symlink_to("m.onnx")
    (made / "check.html").write_text("{}")
    (made / "check.svg").symlink_to("new.html")
    (made / "notes.html").write_text("notes")
    (made / "notes.svg").write_text("notes")
    (made / "pom.xml").write_text("<?xml version='1.0'?>\n<!-- a build -->\n<project/>")
    shutil.copy(made / "m.bin", made / "other.bin")
    (made / "out").mkdir()
    library.convert(made / "m.onnx", made / "out" / "m.xml")
    return made


@pytest.mark.skipif(os.name != "posix", reason="links need a privilege")
@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("check m.onnx --junit m.onnx", READ),
        ("check m.onnx --junit m.onnx --force", READ),
        ("check m.onnx --junit ./out/../m.onnx", READ),
        ("check m.onnx --junit link.xml", READ),
        ("check m.onnx --junit hard.xml", READ),
        ("check m.onnx m.xml --junit m.xml", READ),
        ("check m.onnx m.xml --junit m.bin --force", READ),
        ("check m.onnx --junit m.onnx.data", READ),
        ("check m.onnx --junit whole.onnx", "is not a report of JUnit's"),
        ("check m.onnx --junit pom.xml", "is not a report of JUnit's"),
        ("check m.onnx --junit nowhere/report.xml", "there is no such directory"),
        ("check m.onnx --report link.html", READ),
        ("check m.onnx --report hard.html", READ),
        ("check m.onnx --report notes.html", "is not a page in HTML"),
        ("check p.onnx --report p.html --force", READ),
        ("check m.onnx --reduce m.onnx", READ),
        ("check m.onnx --reduce m.onnx --force", READ),
        ("check m.xml --reduce m.xml", READ),
        ("check m.onnx --inputs small.npz --reduce small.onnx", READ),
        ("check m.xml --weights small-other.bin --reduce small-other.xml --force", READ),
        ("inspect m.onnx --html link.html", READ),
        ("inspect m.onnx --html hard.html", READ),
        ("inspect m.onnx --svg link.svg", READ),
        ("inspect m.onnx --svg hard.svg --force", READ),
        ("inspect m.onnx --html notes.html", "is not a page in HTML"),
        ("inspect m.onnx --svg notes.svg", "is not an SVG"),
        ("inspect p.onnx --html p.html --force", READ),
        ("inspect m.onnx --html check.html --coverage check.html --force", READ),
        ("inspect m.onnx --html new.html --svg check.svg", "and both would be written"),
        ("convert m.onnx pom.xml", "is XML, not an IR"),
        ("convert m.xml other.xml --weights other.bin --force", "is read from it"),
        ("convert whole.onnx array.xml --value x=x.npy", READ),
        ("convert m.onnx out/m.xml --output-dir .", READ),
        ("convert r.onnx s.onnx --output-dir . --force", READ),
    ],
)  # fmt: skip
def test_outputs_over_inputs(
    command: str, says: str, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = shutil.copytree(models, tmp_path / "place", symlinks=True)
    for suffix in ("xml", "html", "svg"):
        os.link(place / "m.onnx", place / f"hard.{suffix}")
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    monkeypatch.chdir(place)
    finished = bridge(*command.split())
    assert finished.code == 2 and says in finished.err, finished
    assert finished.err.count("Error:") == 1
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before


def test_the_same_again(models: Path, tmp_path: Path) -> None:
    """A command overwrites its own earlier output, and empty files."""
    model, page, picture = models / "m.onnx", tmp_path / "tree.html", tmp_path / "tree.svg"
    report, junit, cache = tmp_path / "r.html", tmp_path / "junit.xml", tmp_path / "cache"
    part, few = tmp_path / "small.onnx", ("--samples", "1")
    page.touch(), junit.touch()
    for _ in range(2):
        assert bridge("inspect", model, "--html", page, "--svg", picture).code == 0
        assert bridge("check", model, "--report", report, *few).code == 0
        assert bridge("check", model, "--junit", junit, "--cache", cache, *few).code == 0
        assert bridge("convert", model, "--output-dir", tmp_path).code == 0
        assert bridge("check", model, "--reduce", part, *few).code == 0
    page.write_text("notes")
    assert bridge("inspect", model, "--html", page, "--force").code == 0
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_from_python(models: Path) -> None:
    for reduce in (models / "m.onnx", models / "m.xml"):
        before = reduce.read_bytes()
        with pytest.raises(library.UsageError, match=READ):
            check(reduce, reduce=reduce, force=True)
        with pytest.raises(library.UsageError, match=READ):
            check(library.load(reduce), reduce=reduce)
        with pytest.raises(library.UsageError, match=READ):
            assert_round_trip(reduce, page=reduce)
        assert reduce.read_bytes() == before
