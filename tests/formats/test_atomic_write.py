"""The state of the destination after a kill at any step, beside strange files, and with other
owners."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import onnx
import pytest

import bridge
from bridge.files.atomic_write import whole
from bridge.neutral.storage import RangeCopier

QUERIES = ("fspath", "stat", "lstat", "fstat", "listxattr", "is_dir", "_path_normpath")
"""Calls that change nothing: a kill before one leaves the same files as a kill before the next
call."""

WRITER = whole.__wrapped__.__code__  # type: ignore[attr-defined]


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
    """The content of both files; b"" if the file that names the other is missing."""
    if not target.exists():
        return b""
    return target.read_bytes() + beside(target).read_bytes()


def killed(step: int, work: Callable[[], None]) -> bool:
    """Runs some work in another process and kills it before its `step`-th system call within the
    writer. Returns False if the work ends before."""
    child = os.fork()
    if child:
        status = os.waitpid(child, 0)[1]
        assert os.waitstatus_to_exitcode(status) in (0, -signal.SIGKILL)
        return os.WIFSIGNALED(status)
    left, inside = step, False

    def count(frame: FrameType, event: str, call: Any) -> None:
        nonlocal left, inside
        inside = inside or frame.f_code is WRITER
        if event == "c_call" and inside:
            module = call.__module__ or type(call.__self__).__module__
            left -= module in ("posix", "fcntl", "io", "_io") and call.__name__ not in QUERIES
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    try:
        sys.setprofile(count)
        work()
        os._exit(0)
    finally:
        os._exit(1)


def tree(*folders: Path) -> dict[str, bytes | None]:
    """All contents of folders."""
    paths = [path for folder in folders for path in sorted(folder.rglob("*"))]
    return {str(path): path.read_bytes() if path.is_file() else None for path in paths}


def plain(target: Path, elsewhere: Path) -> None:
    """Both files are at their places."""


def fresh(target: Path, elsewhere: Path) -> None:
    target.unlink(), beside(target).unlink()


def linked(target: Path, elsewhere: Path) -> None:
    """The destination is a link to a file in another folder."""
    target.symlink_to(target.rename(elsewhere / "blob"))


def both_linked(target: Path, elsewhere: Path) -> None:
    linked(target, elsewhere)
    shared(target, elsewhere)


def shared(target: Path, elsewhere: Path) -> None:
    """The data file is a link to the data of another model."""
    other = elsewhere / f"other{target.suffix}"
    beside(target).rename(beside(other))
    beside(target).symlink_to(beside(other))


def hard_linked(target: Path, elsewhere: Path) -> None:
    os.link(beside(target), beside(elsewhere / f"other{target.suffix}"))


@pytest.mark.parametrize(
    ("name", "case"),
    [
        *(("model.xml", case) for case in (plain, fresh, linked, shared, hard_linked, both_linked)),
        *(("model.onnx", case) for case in (plain, shared)),
    ],
)
def test_killed_at_each_step(name: str, case: Callable[[Path, Path], None], tmp_path: Path) -> None:
    """A kill leaves the old pair, the new pair, or no file that could be loaded.

    Data that another model may share stay. The next write leaves the remains as they are.
    """
    place, elsewhere = tmp_path / "place", tmp_path / "elsewhere"
    target, others = place / name, beside(elsewhere / f"other{Path(name).suffix}")
    old, new = b"names old" + b"old data", b"names new" + b"new data"

    def write() -> None:
        with whole(target, beside(target), notes=[]) as parts:
            for part, text in zip(parts, (b"names new", b"new data"), strict=True):
                part.write_bytes(text)

    seen, step = set(), 0
    while True:
        step += 1
        for folder in (place, elsewhere):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        target.write_bytes(b"names old"), beside(target).write_bytes(b"old data")
        case(target, elsewhere)
        before = others.read_bytes() if others.exists() else None
        lives = not killed(step, write)
        found = content(target)
        assert found in ({new} if lives else {old, new, b""}), f"at step {step}"
        assert (others.read_bytes() if others.exists() else None) == before
        if lives:
            break
        seen.add(found)
        left = tree(place, elsewhere)
        with whole(place / "another.xml", notes=[]) as (part,):
            part.write_bytes(b"another")
        (place / "another.xml").unlink()
        assert tree(place, elsewhere) == left, f"at step {step}"
    assert step > 15 and seen == ({new, b""} if case is fresh else {old, new, b""})
    assert not [path for path in (*place.iterdir(), *elsewhere.iterdir()) if path.is_dir()]


def test_one_file_replaces_another_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = model(tmp_path / "a.onnx", 1), model(tmp_path / "b.onnx", 2)
    monkeypatch.delattr(os, "rename")  # It would leave no file in place for a moment.
    bridge.convert(source, target)
    assert bridge.load(target).graph.name == "adds_1"
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("name", ["model.xml", "model.onnx"])
def test_a_conversion_that_is_killed(name: str, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    first, second = model(tmp_path / "a.onnx", 1), model(tmp_path / "b.onnx", 2)
    target = place / name
    new = converted(second, tmp_path / name)
    old = converted(first, target)
    step, seen = 0, set()
    while killed(step := step + 1, lambda: bridge.convert(second, target, **options(target))):
        found = content(target)
        assert found in (old, new, b""), f"at step {step}"
        seen.add(found)
        if found != old:
            converted(first, target) if found else bridge.convert(
                first, target, force=True, **options(target)
            )
    assert seen == {old, new, b""} and content(target) == new


MARKERS = ("whole", "bridge", "unfinished", "marker", ".bridge")


@pytest.mark.parametrize("name", [".bridge-0123abcd", ".bridge-settings", ".bridge-verdicts"])
def test_folders_that_look_like_those_of_bridge_stay(name: str, tmp_path: Path) -> None:
    """Their contents neither replace another file nor are removed, whatever the folder's name."""
    place, home = tmp_path / "place", tmp_path / "home"
    planted = place / name
    planted.mkdir(parents=True), home.mkdir()
    for file in (*MARKERS, "0-model.xml", "1-thesis.txt", "2-.bashrc", "0.xml", "1.bin", "old0"):
        (planted / file).write_text("planted")
    (home / "thesis.txt").write_text("years of work")
    if os.name == "posix":
        (place / "thesis.txt").symlink_to(home / "thesis.txt")
        (place / ".bridge-01234567").symlink_to(home)
    (place / ".bridge-12345678").write_text("a file")
    before = tree(place, home)
    bridge.convert(model(tmp_path / "a.onnx", 1), place / "model.xml")
    for file in ("model.xml", "model.bin"):
        (place / file).unlink()
    assert tree(place, home) == before


def test_a_folder_that_is_replaced_meanwhile(tmp_path: Path) -> None:
    """Files in the link's folder are neither moved nor removed."""
    home, target = tmp_path / "home", tmp_path / "model.xml"
    home.mkdir()
    with (
        pytest.raises(bridge.UsageError, match="was replaced while"),
        whole(target, target.with_suffix(".bin"), notes=[]) as parts,
    ):
        for part in parts:
            part.write_text("new")
            (home / part.name).write_text("of somebody")
        parts[0].parent.rename(tmp_path / "aside")
        parts[0].parent.symlink_to(home)
    assert not target.exists() and len(list(home.iterdir())) == 2


def test_a_directory_that_comes_meanwhile(tmp_path: Path) -> None:
    target = tmp_path / "model.xml"
    data = target.with_suffix(".bin")
    with (
        pytest.raises(bridge.UsageError, match="Is a directory"),
        whole(target, data, notes=[]) as parts,
    ):
        for part in parts:
            part.write_text("new")
        data.mkdir(), (data / "precious").write_text("precious")
    assert tree(tmp_path) == {str(data): None, str(data / "precious"): b"precious"}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs two users")
def test_a_link_of_another_user_in_a_folder_of_all(tmp_path: Path) -> None:
    shared, home = tmp_path / "tmp", tmp_path / "precious.xml"
    shared.mkdir(), shared.chmod(0o1777), os.chown(shared, 12345, -1)
    home.write_text("<net>precious</net>")
    target = shared / "model.xml"
    target.symlink_to(home)
    os.lchown(target, 23456, -1)
    with pytest.raises(bridge.UsageError, match="link of another user"):
        bridge.convert(model(tmp_path / "a.onnx", 1), target, force=True)
    assert home.read_text() == "<net>precious</net>"
    os.lchown(target, 0, -1)
    bridge.convert(tmp_path / "a.onnx", target)
    assert home.read_text() != "precious" and target.is_symlink()


def test_data_that_two_models_share(tmp_path: Path) -> None:
    """Another model may still need data that the new model does not need."""
    first, small = model(tmp_path / "a.onnx", 1), model(tmp_path / "small.onnx", 2)
    decoder, second = tmp_path / "decoder.onnx", tmp_path / "decoder_with_past.onnx"
    converted(first, decoder)
    second.write_bytes(decoder.read_bytes())
    (note,) = bridge.convert(small, decoder).notes
    assert "decoder.onnx.data: stays" in note
    assert onnx.numpy_helper.to_array(onnx.load(second).graph.initializer[0])[0] == 1


@pytest.mark.skipif(os.name != "posix", reason="links need a privilege")
def test_data_behind_a_link(tmp_path: Path) -> None:
    source, other, target = (tmp_path / name for name in ("a.onnx", "other.xml", "model.xml"))
    bridge.convert(model(source, 1), other)
    data = beside(other).read_bytes()
    shutil.copy(other, target)
    beside(target).symlink_to(beside(other))
    (note,) = bridge.convert(model(source, 2), target).notes
    assert "model.bin: was a link" in note
    assert beside(other).read_bytes() == data != beside(target).read_bytes()


@pytest.mark.skipif(os.name != "posix", reason="links need a privilege")
def test_a_link_to_the_file_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "model.xml"
    beside(target).write_text("precious")
    target.symlink_to(beside(target))
    with pytest.raises(bridge.UsageError, match="a link to a file that is written too"):
        bridge.convert(model(tmp_path / "a.onnx", 1), target, force=True)
    assert beside(target).read_text() == "precious"


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
        bridge.convert(source, target)  # needs no second file
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
    with pytest.raises(bridge.UsageError, match=r"model\.bin: is read-only; .*`force=True`"):
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
    """No file is written, rather than half of each state."""
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
            time.sleep(0.02)  # lets the clock of the file system advance
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
    assert not written  # Bridge could make it again.
    bridge.convert(target, target, force=True, **options(target))
    companion = bridge.files.companion(target)
    assert written == [path.stat().st_ino for path in (target, companion, tmp_path)]
