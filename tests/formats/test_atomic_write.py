"""What stands at the destination: after a kill at any step, beside strangers, of other owners."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import bridge
from bridge.neutral.storage import RangeCopier

STEPS = {
    "open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.chown", "os.link",
    "os.setxattr", "os.symlink", "os.truncate", "os.utime",
}  # fmt: skip


def model(path: Path, number: float, size: int = 1000) -> Path:
    """A model that adds `number` to its input."""
    add = onnx.helper.make_node("Add", ["x", "w"], ["y"])
    ends = [onnx.helper.make_tensor_value_info(n, 1, [size]) for n in "xy"]
    weights = onnx.numpy_helper.from_array(np.full(size, number, np.float32), "w")
    graph = onnx.helper.make_graph([add], f"adds_{number}", ends[:1], ends[1:], [weights])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)]), path)
    return path


def converted(source: Path, target: Path) -> bytes:
    bridge.convert(source, target, **options(target))
    return content(target)


def options(target: Path) -> Any:
    return {"external_data": True} if target.suffix == ".onnx" else {}


def beside(target: Path) -> Path:
    return target.with_suffix(".bin") if target.suffix == ".xml" else Path(f"{target}.data")


def content(target: Path) -> bytes:
    """That of both files; b"" where there is none that names the other."""
    if not target.exists():
        return b""
    return target.read_bytes() + beside(target).read_bytes()


def killed(source: Path, target: Path, step: int) -> bool:
    """Runs a conversion that is killed at its `step`-th step in the folder of the target, or comes
    to its end: then False."""
    child = os.fork()
    if child:
        status = os.waitpid(child, 0)[1]
        assert os.waitstatus_to_exitcode(status) in (0, -signal.SIGKILL)
        return os.WIFSIGNALED(status)
    left = step

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event in STEPS and str(target.parent) in str(arguments[0]):
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    try:
        bridge.convert(source, target, **options(target))
        os._exit(0)
    finally:
        os._exit(1)


@pytest.mark.parametrize("name", ["model.xml", "model.onnx"])
@pytest.mark.parametrize("fresh", [False, True], ids=["replaced", "fresh"])
def test_killed_at_each_step(name: str, fresh: bool, tmp_path: Path) -> None:
    """What stands there is the old pair, the new one, or nothing that could be loaded; and the
    next conversion, to another place, clears up and loses neither."""
    sources, place = tmp_path / "sources", tmp_path / "place"
    sources.mkdir(), place.mkdir()
    first, second = model(sources / "a.onnx", 1), model(sources / "b.onnx", 2)
    target = place / name
    old = b"" if fresh else converted(first, sources / name)
    new = converted(second, sources / name)
    step, seen = 0, set()
    while True:
        step += 1
        for path in place.iterdir():
            path.unlink()
        if not fresh:
            converted(first, target)
        if not killed(second, target, step):
            break
        found = content(target)
        assert found in (old, new, b""), f"at step {step}"
        bridge.convert(first, place / "other.xml")
        (place / "other.xml").unlink(), (place / "other.bin").unlink()
        after = content(target)
        assert after in ((found,) if found else (old, new)), f"at step {step}"
        assert {path.name for path in place.iterdir()} <= {name, beside(target).name}
        if not after:
            assert not list(place.iterdir()), f"at step {step}"
        seen.add((found, after))
    assert step > 10
    assert {after for _, after in seen} == {old, new}
    assert content(target) == new
    assert sorted(path.name for path in place.iterdir()) == sorted((name, beside(target).name))


def test_one_file_replaces_another_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = model(tmp_path / "a.onnx", 1), model(tmp_path / "b.onnx", 2)
    monkeypatch.delattr(os, "rename")  # with which nothing would stand there for a moment
    bridge.convert(source, target)
    assert bridge.load(target).graph.name == "adds_1"
    assert len(list(tmp_path.iterdir())) == 2


SLOW = (
    "import sys, time, bridge\n"
    "from bridge.neutral.storage import RangeCopier as Copier\n"
    "copy = Copier.copy\n"
    "def slow(*given): copy(*given); print('here', flush=True); time.sleep(60)\n"
    "Copier.copy = slow\n"
    "bridge.convert(*sys.argv[1:], **{arguments})"
)


@pytest.mark.parametrize("name", ["model.xml", "model.onnx"])
def test_killed_while_weights_are_written(name: str, tmp_path: Path) -> None:
    """What is left is removed by the next conversion to the same place, to whichever name."""
    source, target = model(tmp_path / "a.onnx", 1, 100_000), tmp_path / "place" / name
    target.parent.mkdir()
    code = SLOW.format(arguments=options(target))
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", code, source, target]
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "here\n"
        process.kill()
        process.communicate(timeout=60)
    (left,) = target.parent.iterdir()
    assert left.name.startswith(".bridge-")
    bridge.convert(source, target.parent / "other.xml")
    assert sorted(path.name for path in target.parent.iterdir()) == ["other.bin", "other.xml"]


def test_folders_that_only_look_like_leftovers_stay(tmp_path: Path) -> None:
    strange = tmp_path / ".bridge-of-somebody"
    strange.mkdir()
    (tmp_path / ".bridge-12345678").write_text("a file")
    bridge.convert(model(tmp_path / "a.onnx", 1), tmp_path / "model.xml")
    assert strange.is_dir() and (tmp_path / ".bridge-12345678").is_file()


def test_conversions_that_run_are_let_alone(tmp_path: Path) -> None:
    first, second = model(tmp_path / "a.onnx", 1), model(tmp_path / "b.onnx", 2)
    code = (
        "import sys, bridge, bridge.ir_format.backend as backend\n"
        "write = backend.write\n"
        "def slow(*arguments): print('here', flush=True); input(); write(*arguments)\n"
        "backend.write = slow\n"
        "bridge.convert(*sys.argv[1:])"
    )
    command = [sys.executable, "-c", code, first, tmp_path / "one.xml"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "here\n"
        bridge.convert(second, tmp_path / "two.xml")
        process.communicate("\n", timeout=60)
        assert process.returncode == 0
    assert sorted(path.name for path in tmp_path.glob("*.xml")) == ["one.xml", "two.xml"]
    assert not list(tmp_path.glob(".bridge-*"))


@pytest.mark.parametrize("name", ["model.xml", "model.onnx"])
def test_files_of_nobody_are_not_overwritten(name: str, tmp_path: Path) -> None:
    source, target = model(tmp_path / "a.onnx", 1), tmp_path / name
    precious = beside(target)
    precious.write_text("precious")
    with pytest.raises(bridge.UsageError, match="would be overwritten, but there is no"):
        bridge.convert(source, target, **options(target))
    assert precious.read_text() == "precious" and not target.exists()
    if name.endswith(".onnx"):
        bridge.convert(source, target)  # needs no file beside it
        assert precious.read_text() == "precious"
        target.unlink()
    bridge.convert(source, target, force=True, **options(target))
    assert content(target) and precious.read_bytes() != b"precious"


def test_permissions_are_kept(tmp_path: Path) -> None:
    source, target = model(tmp_path / "a.onnx", 1), tmp_path / "model.xml"
    bridge.convert(source, target)
    target.chmod(0o600), beside(target).chmod(0o444)
    if os.geteuid() == 0:
        os.chown(target, 12345, 23456)
    with pytest.raises(bridge.UsageError, match=r"model\.bin: is read-only; .*--force"):
        bridge.convert(source, target)
    assert not bridge.convert(source, target, force=True).notes
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert stat.S_IMODE(beside(target).stat().st_mode) == 0o444
    if os.geteuid() == 0:
        assert (target.stat().st_uid, target.stat().st_gid) == (12345, 23456)


def test_an_owner_that_cannot_be_kept_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = model(tmp_path / "a.onnx", 1), tmp_path / "model.xml"
    bridge.convert(source, target)
    if os.geteuid() != 0:
        pytest.skip("only root can have a file of somebody else here")
    os.chown(target, 12345, -1)

    def refuse(*arguments: Any) -> None:
        raise PermissionError(1, "not permitted")

    monkeypatch.setattr(os, "chown", refuse)
    (note,) = bridge.convert(source, target).notes
    assert str(target) in note and "owner" in note


def replaced(path: Path, other: Path) -> None:
    os.replace(other, path)


def overwritten(path: Path, other: Path) -> None:
    with path.open("r+b") as file:
        file.write(other.read_bytes())


def truncated(path: Path, other: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def gone(path: Path, other: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("change", [replaced, overwritten, truncated, gone])
@pytest.mark.parametrize("kind", ["embedded", "external", "ir"])
def test_a_source_that_changes_meanwhile(
    kind: str, change: Callable[[Path, Path], None], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Nothing is written, rather than half of each."""
    paths = []
    for number in (1, 2):
        path = model(tmp_path / f"{number}.onnx", number, 100_000)
        if kind == "external":
            path = tmp_path / f"e{number}.onnx"
            bridge.convert(tmp_path / f"{number}.onnx", path, external_data=True)
        elif kind == "ir":
            path = tmp_path / f"{number}.xml"
            bridge.convert(tmp_path / f"{number}.onnx", path)
        paths.append(path)
    data = [path if kind == "embedded" else beside(path) for path in paths]
    copy = RangeCopier.copy

    def changing(copier: RangeCopier, *arguments: Any) -> None:
        if data[1].exists():
            time.sleep(0.02)  # the clock of the file system ticks
            change(*data)
            data[1].unlink(missing_ok=True)
        copy(copier, *arguments)

    monkeypatch.setattr(RangeCopier, "copy", changing)
    place = tmp_path / "place"
    place.mkdir()
    with pytest.raises(bridge.InvalidModelError, match=r"has changed|truncated|cannot be read"):
        bridge.convert(paths[0], place / "out.onnx", external_data=True)
    assert not list(place.iterdir())


def test_a_loaded_model_whose_file_has_changed(tmp_path: Path) -> None:
    source = model(tmp_path / "a.onnx", 1, 100_000)
    loaded = bridge.load(source)
    model(source, 2, 100_000)
    with pytest.raises(bridge.InvalidModelError, match="has changed since it was read"):
        bridge.save(loaded, tmp_path / "out.xml")


@pytest.mark.parametrize("name", ["x" * 251 + ".xml", "x" * 245 + ".onnx"])
def test_the_longest_name(name: str, tmp_path: Path) -> None:
    source, target = model(tmp_path / "a.onnx", 1), tmp_path / name
    assert converted(source, target) == converted(source, target) != b""


def test_a_link_to_itself(tmp_path: Path) -> None:
    loop = tmp_path / "loop.xml"
    loop.symlink_to(loop)
    with pytest.raises(bridge.UsageError, match="leads to itself"):
        bridge.convert(model(tmp_path / "a.onnx", 1), loop)


@pytest.mark.parametrize("name", ["model.xml", "model.onnx"])
def test_what_replaces_its_source_is_on_the_disk_first(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    sync = os.fsync

    def count(file: int) -> None:
        written.append(os.fstat(file).st_ino)
        sync(file)

    monkeypatch.setattr(os, "fsync", count)
    target = tmp_path / name
    bridge.convert(model(tmp_path / "a.onnx", 1), target, **options(target))
    bridge.convert(tmp_path / "a.onnx", target, **options(target))
    assert not written  # it could be made again
    bridge.convert(target, target, force=True, **options(target))
    companion = bridge.files.companion(target)
    assert written == [path.stat().st_ino for path in (target, companion, tmp_path)]
