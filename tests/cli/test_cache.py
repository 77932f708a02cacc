"""Kept verdicts: the facts that they depend on, and the facts that do not matter."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
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
    """Whether the verdict came from the cache, and the printed text."""
    finished = bridge("check", "m.onnx", "--samples", "1", "--cache", "kept", "--json", *options)
    (model,) = json.loads(finished.out)["models"]
    return model["cached"], finished


def entry(folder: Path) -> Path:
    (path,) = (folder / "kept").iterdir()
    return path


def test_what_a_key_holds(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key holds contents and versions, but neither times nor the folder's place."""

    def key(**options: Any) -> tuple[str, Path]:
        cache, models = caching.Cache(Path("kept"), {"limits": {}, **options}), [Path("m.onnx")]
        models.append(Path("m.xml"))
        return cache.key(*models), cache._place(models)

    first = key()
    for path in [*Path(library.__file__).parent.glob("*.py"), folder / "m.onnx", folder / "m.bin"]:
        status = path.stat()
        os.utime(path, (status.st_atime, status.st_mtime + 1000))
    shutil.copytree(folder, folder.parent / "moved")
    monkeypatch.chdir(folder.parent / "moved")
    assert key() == first
    assert key(rtol={"*": 1e-2})[1] != first[1] != key(limits={"nodes": 7})[1]
    monkeypatch.setattr(caching.platform, "machine", lambda: "another")
    assert key()[0] != first[0]
    monkeypatch.undo()
    monkeypatch.setattr(caching, "_ENGINES", ("onnx",))
    assert key()[0] != first[0]
    monkeypatch.undo()
    monkeypatch.chdir(folder.parent / "moved")
    weights = Path("m.bin")
    weights.write_bytes(weights.read_bytes() + b"more")
    assert key()[0] != first[0] and key()[1] == first[1]


def test_another_folder_has_other_data(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One cache for two folders. The second folder has other data under the same names, so it is
    checked."""
    keys = set()
    for number in (1, 2):
        place = folder / str(number)
        place.mkdir()
        monkeypatch.chdir(folder)
        model = onnx.parser.parse_model(
            '<ir_version: 8, opset_import: ["": 17]> g (float[300] x) => (float[300] y)'
            "{y = Add(x, w)}"
        )
        tensor = onnx.numpy_helper.from_array(np.full(300, number, np.float32), "w")
        model.graph.initializer.append(tensor)
        onnx.save(model, place / "m.onnx", save_as_external_data=True, location="m.data",
                  size_threshold=0)  # fmt: skip
        monkeypatch.chdir(place)
        keys.add(caching.Cache(folder / "kept", {"limits": {}}).key(Path("m.onnx")))
    assert (folder / "1/m.onnx").read_bytes() == (folder / "2/m.onnx").read_bytes()
    assert len(keys) == 2 and "" not in keys


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
    """An entry of other fields, with a matching digest."""

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
def test_an_entry_that_counts_for_nothing(
    wrong: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache, model = caching.Cache(tmp_path / "kept", {"limits": {}}), SOURCE
    key = cache.key(model)
    outcome = Outcome(str(model), None, "equal", "OK", {"failures": []}, 1.5)
    cache.keep(key, outcome, model)
    path = entry(tmp_path)
    assert cache.find(key, model) == replace(outcome, cached=True)
    assert cache.find("0" * 64, model) is None and cache.find("", model) is None
    assert capsys.readouterr().err == ""
    WRONG[wrong](path)
    assert cache.find(key, model) is None
    assert f"{path}: is not used: " in capsys.readouterr().err
    cache.keep(key, outcome, model)
    assert (cache.find(key, model) is None) == (wrong == "a folder")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_a_run_goes_on(folder: Path) -> None:
    run()
    path = entry(folder)
    path.unlink()
    os.mkfifo(path)
    cached, finished = run()
    assert not cached and finished.code == 0 and "is not used" in finished.err


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
def test_a_link_is_not_followed(folder: Path) -> None:
    run()
    precious = folder / "precious"
    precious.write_text("mine")
    path = entry(folder)
    path.unlink()
    path.symlink_to(precious)
    assert run()[0] is False and precious.read_text() == "mine"


def test_a_folder_that_takes_nothing(folder: Path) -> None:
    (folder / "kept").write_text("no folder")
    cached, finished = run()
    assert not cached and finished.code == 0 and "cannot be kept" in finished.err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_data_that_is_a_fifo(folder: Path) -> None:
    (folder / "m.bin").unlink()
    os.mkfifo(folder / "m.bin")
    assert caching.Cache(folder / "kept", {"limits": {}}).key(Path("m.xml")) == ""
