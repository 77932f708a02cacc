"""Verdicts that are kept: what they rest on, and what counts for nothing."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import bridge as library
from bridge.cli import cache as caching
from bridge.cli.outcome import Outcome
from tests.support.command_line import Finished, bridge

SOURCE = Path(__file__).parents[2] / "roundtrip_models" / "if_before_growing_chain.onnxtxt"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with a model and its IR."""
    monkeypatch.chdir(tmp_path)
    library.convert(SOURCE, tmp_path / "m.onnx")
    library.convert(SOURCE, tmp_path / "m.xml")
    return tmp_path


def run(*options: str) -> tuple[bool, Finished]:
    """Whether the verdict came from the cache, and what was printed."""
    finished = bridge("check", "m.onnx", "--samples", "1", "--cache", "kept", "--json", *options)
    (model,) = json.loads(finished.out)["models"]
    return model["cached"], finished


def entry(folder: Path) -> Path:
    (path,) = (folder / "kept").iterdir()
    return path


def test_what_a_key_holds(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Contents and versions: not times, nor where the folder is."""
    assert run()[0] is False and run()[0] is True
    for path in [*Path(library.__file__).parent.glob("*.py"), folder / "m.onnx", folder / "m.bin"]:
        status = path.stat()
        os.utime(path, (status.st_atime, status.st_mtime + 1000))
    assert run()[0] is True
    shutil.copytree(folder, folder.parent / "moved")
    monkeypatch.chdir(folder.parent / "moved")
    assert run()[0] is True
    assert run("--rtol", "1e-2")[0] is False and run("--limit", "nodes=70000")[0] is False
    weights = Path("m.bin")
    weights.write_bytes(weights.read_bytes() + b"more")
    assert run()[0] is False and run()[0] is True
    monkeypatch.setattr(caching.platform, "machine", lambda: "another")
    assert run()[0] is False


def test_another_folder_has_other_data(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One cache for two folders: the data of the second count, though their names are the same."""
    for number in (1, 2):
        place = folder / str(number)
        place.mkdir()
        model = onnx.parser.parse_model(
            '<ir_version: 8, opset_import: ["": 17]> g (float[300] x) => (float[300] y)'
            "{y = Add(x, w)}"
        )
        tensor = onnx.numpy_helper.from_array(np.full(300, number, np.float32), "w")
        model.graph.initializer.append(tensor)
        onnx.save(model, place / "m.onnx", save_as_external_data=True, location="m.data",
                  size_threshold=0)  # fmt: skip
    assert (folder / "1/m.onnx").read_bytes() == (folder / "2/m.onnx").read_bytes()
    options = ("--samples", "1", "--cache", folder / "kept", "--json")
    cached = []
    for number in (1, 2, 2):
        monkeypatch.chdir(folder / str(number))
        (model_,) = json.loads(bridge("check", "m.onnx", *options).out)["models"]
        cached.append(model_["cached"])
    assert cached == [False, False, True]


def test_a_model_that_changes_meanwhile(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bridge.check.isolation import Worker

    def call(worker: Worker, *arguments: Any, **options: Any) -> Any:
        found = real(worker, *arguments, **options)
        if isinstance(found, Outcome):
            weights = folder / "m.bin"
            weights.write_bytes(weights.read_bytes() + b"more")
        return found

    real = Worker.call
    monkeypatch.setattr(Worker, "call", call)
    assert run()[0] is False and not (folder / "kept").exists()


def changed(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    def write(path: Path) -> None:
        data = json.loads(path.read_text(encoding="utf-8"))
        change(data)
        path.write_text(json.dumps(data), encoding="utf-8")

    return write


def forged(**fields: Any) -> Callable[[Path], object]:
    """An entry of other fields, with the digest that goes with them."""

    def change(data: dict[str, Any]) -> None:
        data["outcome"] |= fields
        data["digest"] = caching._hash([data["key"], data["outcome"]])

    return changed(change)


def instead(make: Callable[[Path], object]) -> Callable[[Path], object]:
    def write(path: Path) -> None:
        path.unlink()
        make(path)

    return write


def huge(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(1 << 42)


WRONG = {
    "no JSON": lambda path: path.write_bytes(b"\xff\x00"),
    "empty": lambda path: path.write_bytes(b""),
    "a list": lambda path: path.write_text("[]"),
    "deep": lambda path: path.write_text("[" * 100_000),
    "a key that is gone": changed(lambda data: data.pop("digest")),
    "fields that are gone": changed(lambda data: data["outcome"].pop("report")),
    "fields that are new": changed(lambda data: data["outcome"].update(more=1)),
    "another verdict": changed(lambda data: data["outcome"].update(verdict="different")),
    "another key": changed(lambda data: data.update(key="0" * 64)),
    "a text that is none": forged(text=5),
    "a report that is none": forged(report=[1]),
    "a verdict that is none": forged(verdict=["equal"]),
    "seconds that are none": forged(seconds="1"),
    "huge": huge,
    "a folder": instead(lambda path: path.mkdir()),
}
if os.name == "posix":
    WRONG |= {
        "a FIFO": instead(os.mkfifo),
        "a device": instead(lambda path: path.symlink_to("/dev/zero")),
    }


@pytest.mark.parametrize("wrong", WRONG)
def test_an_entry_that_counts_for_nothing(wrong: str, folder: Path) -> None:
    run()
    WRONG[wrong](entry(folder))
    cached, finished = run()
    assert not cached and finished.code == 0
    assert f"{entry(folder)}: counts for nothing".replace(f"{folder}{os.sep}", "") in finished.err
    if wrong != "a folder":
        assert run()[0] is True
    else:
        assert "cannot be kept" in finished.err


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
def test_a_link_is_not_followed(folder: Path) -> None:
    run()
    precious = folder / "precious"
    precious.write_text("mine")
    path = entry(folder)
    path.unlink()
    path.symlink_to(precious)
    assert run()[0] is False and precious.read_text() == "mine"


@pytest.mark.parametrize("what", ["a file", "a folder that is read-only"])
def test_a_folder_that_takes_nothing(what: str, folder: Path) -> None:
    if what == "a file":
        (folder / "kept").write_text("no folder")
    elif os.name != "posix" or os.geteuid() == 0:
        pytest.skip("whom nothing stops")
    else:
        (folder / "kept").mkdir(mode=0o500)
    cached, finished = run()
    assert not cached and finished.code == 0 and "cannot be kept" in finished.err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_data_that_is_a_fifo(folder: Path) -> None:
    (folder / "m.bin").unlink()
    os.mkfifo(folder / "m.bin")
    cached, finished = run()
    assert not cached and finished.code == 2 and not (folder / "kept").exists()
