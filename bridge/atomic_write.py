"""Files that are written whole or not at all, and how they take the place of others.

A conversion writes into a hidden folder of its own beside its destination, `.bridge-xxxxxxxx`:

    .bridge-xxxxxxxx/0-model.xml    the new files, in the order of their targets
    .bridge-xxxxxxxx/1-model.bin
    .bridge-xxxxxxxx/whole          stands there as soon as all new files are written
    .bridge-xxxxxxxx/old0           what stood at a target before

At the end it moves the new files into place. Of the files of a model the first names the others (an
`.xml` its `.bin`), so the first leaves first and comes last. Whoever is killed on the way leaves
the old files, the new ones, or the first one missing, never one of each.

A lock on the folder says that its conversion is still alive. The next conversion to the same
directory finishes or removes the folders that nobody locks.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

try:
    import fcntl
except ImportError:  # Windows locks no folders: what a killed conversion left there stays
    fcntl = None  # type: ignore[assignment]

from bridge.errors import UsageError

_PREFIX, _ABANDONED = ".bridge-", ".abandoned"
_NAME = rf"\{_PREFIX}[a-z0-9_]{{8}}(\{_ABANDONED})?"
_WHOLE = "whole"
_LONGEST_NAME = 255
_PATIENCE = 10.0
"""Seconds to wait for other conversions that are about to move their files."""

_folders: set[Path] = set()
"""Those of this process, for `abandon`."""

_moving = threading.Lock()


@contextmanager
def whole(
    *targets: Path,
    notes: list[str],
    check: Callable[[Sequence[Path]], None] = lambda parts: None,
    lasting: bool = False,
) -> Iterator[list[Path]]:
    """Temporary paths for the targets, which take their places when the block ends well; the first
    target is the file that names the others. A path at which the block wrote nothing is left out.

    A target that is a link stays one: the file that it leads to is replaced. A new file has the
    permissions of the one it replaces; `notes` says where that cannot be. `check` is called with
    the targets that will be written at the last moment before, and raises to prevent it. `lasting`
    has the new files on the disk before they replace others, for a power failure: it costs what the
    disk takes, and is for what could not be made again. What the system refuses (no permission, no
    space left) is a UsageError.
    """
    try:
        files = [target.resolve() for target in targets]
        with ExitStack() as stack:
            parents = sorted({file.parent for file in files})
            folders = {parent: stack.enter_context(_folder(parent)) for parent in parents}
            parts = [folders[file.parent] / _part_name(i, file) for i, file in enumerate(files)]
            yield parts
            wrote = [i for i, part in enumerate(parts) if part.exists()]
            moves = [(parts[i], files[i]) for i in wrote]
            if lasting:
                _sync(part for part, _ in moves)
            with _undisturbed(), _moving, ExitStack() as locks:
                for parent in parents:
                    locks.enter_context(_locked(parent))
                check([targets[i] for i in wrote])
                for part, file in moves:
                    _keep_permissions(part, file, notes)
                if len(folders) == 1 and all(part.name.endswith(file.name) for part, file in moves):
                    (folders[parents[0]] / _WHOLE).touch()
                _put_in_place(moves)
            if lasting:
                _sync(parents)
    except OSError as error:
        raise UsageError(f"{targets[0]}: cannot be written: {error.strerror or error}") from error


@contextmanager
def settled(target: Path) -> Iterator[None]:
    """Runs the block while no other conversion moves its files beside `target`, after what killed
    ones left there is finished or removed."""
    parent = target.resolve().parent
    with _locked(parent):
        _clear(parent)
        yield


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for files that nobody needs afterwards."""
    # Windows keeps a file that somebody has opened, as an engine does with weights.
    made = tempfile.TemporaryDirectory(prefix="bridge-check-", ignore_cleanup_errors=True)
    with made as name, _registered(Path(name)):
        yield Path(name)


def abandon() -> None:
    """Removes what all conversions of this process have written so far, for a process that is
    about to end. Waits a moment for one that moves its files, and leaves them to the next run
    where that takes longer."""
    if _moving.acquire(timeout=0.2):
        for folder in list(_folders):
            # Under another name, nothing more is written into it meanwhile.
            doomed = folder.with_name(folder.name + _ABANDONED)
            with suppress(OSError):
                folder.rename(doomed)
            shutil.rmtree(doomed, ignore_errors=True)


@contextmanager
def _registered(folder: Path) -> Iterator[None]:
    """Lets `abandon` remove the folder while the block runs."""
    _folders.add(folder)
    try:
        yield
    finally:
        _folders.discard(folder)


@contextmanager
def _folder(parent: Path) -> Iterator[Path]:
    """A locked folder to write in, removed at the end; what killed conversions left goes first."""
    with _locked(parent):
        _clear(parent)
        folder = _made(parent)
        lock = _lock_of(folder)
    with _registered(folder):
        try:
            yield folder
        finally:
            with _undisturbed():
                _remove(folder)
                if lock is not None:
                    os.close(lock)


def _part_name(number: int, file: Path) -> str:
    """What a new file is called in the folder: the number and its name, if the system allows for
    so many bytes. From another name, nobody could finish what was begun."""
    name = f"{number}-{file.name}"
    return name if len(os.fsencode(name)) <= _LONGEST_NAME else f"{number}{file.suffix}"


def _made(parent: Path) -> Path:
    """A new folder. On Windows, `tempfile` would close it to others, and with it the files that
    leave it for their places."""
    while True:
        folder = parent / f"{_PREFIX}{os.urandom(4).hex()}"
        with suppress(FileExistsError):
            folder.mkdir(0o700 if os.name == "posix" else 0o777)
            return folder


def _remove(folder: Path) -> None:
    """Removes a folder; a process that is killed meanwhile leaves none that could be finished."""
    (folder / _WHOLE).unlink(missing_ok=True)
    for path in folder.iterdir() if os.name == "nt" else ():
        path.chmod(stat.S_IWRITE)  # Windows removes no read-only file.
    shutil.rmtree(folder, ignore_errors=True)


def _put_in_place(moves: Sequence[tuple[Path, Path]]) -> None:
    """Moves new files to where they belong. One alone replaces another at once. Of several, what
    stands there goes into the folder first: so ext4 need not write a new file out before it takes
    an old one's name. All moves are taken back where one fails."""
    if len(moves) == 1:
        with suppress(OSError):  # Windows replaces no file that is read-only or open.
            os.replace(*moves[0])
            return
    with ExitStack() as undo:
        for number, (part, target) in enumerate(moves):
            if target.exists():
                old = part.with_name(f"old{number}")
                os.rename(target, old)
                undo.callback(os.rename, old, target)
        for part, target in reversed(moves):
            os.rename(part, target)
            undo.callback(os.rename, target, part)
        undo.pop_all()


def _sync(paths: Iterable[Path]) -> None:
    """Has the system write files, or the names in directories, to the disk."""
    for path in paths:
        if path.is_dir() and os.name != "posix":
            continue  # Windows opens no directories
        opened = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _keep_permissions(part: Path, target: Path, notes: list[str]) -> None:
    """Gives a new file the owner and the permissions of the one that it will replace."""
    try:
        old, new = target.stat(), part.stat()
    except FileNotFoundError:
        return
    lost = []
    for name, changed, ids in (
        ("owner", old.st_uid != new.st_uid, (old.st_uid, -1)),
        ("group", old.st_gid != new.st_gid, (-1, old.st_gid)),
    ):
        try:
            if changed:
                os.chown(part, *ids)
        except OSError:
            lost.append(name)
    part.chmod(stat.S_IMODE(old.st_mode))
    for attribute in os.listxattr(target) if hasattr(os, "listxattr") else ():
        try:
            os.setxattr(part, attribute, os.getxattr(target, attribute))
        except OSError:
            if "acl" in attribute:
                lost.append("access list")
    if lost:
        notes.append(f"{target}: the new file could not keep the old one's {' and '.join(lost)}")


def _clear(parent: Path) -> None:
    """Removes what killed conversions left in a directory, which is locked; where all new files
    were written, they are moved into place first."""
    with suppress(OSError):
        for name in os.listdir(parent):
            if not name.startswith(_PREFIX) or not re.fullmatch(_NAME, name):
                continue
            folder = parent / name
            state = folder.lstat()
            if not stat.S_ISDIR(state.st_mode):
                continue
            if hasattr(os, "geteuid") and state.st_uid != os.geteuid():
                continue
            lock = _lock_of(folder)
            if lock is not None:
                try:
                    _finish(folder)
                    _remove(folder)
                finally:
                    os.close(lock)


def _finish(folder: Path) -> None:
    """Moves the files of a killed conversion into place, if all are written, unless somebody has
    written the first of them since."""
    parts = sorted(folder.glob("[0-9]-*"))
    names_others = bool(parts) and parts[0].name.startswith("0-")
    if not names_others or not (folder / _WHOLE).exists():
        return
    targets = [folder.parent / part.name.partition("-")[2] for part in parts]
    if not os.path.lexists(targets[0]):
        for part, target in reversed(list(zip(parts, targets, strict=True))):
            os.replace(part, target)


def _lock_of(folder: Path, patience: float = 0) -> int | None:
    """An open file that holds the lock of a directory; None where another one holds it for
    longer than `patience` seconds, or the system has no such locks."""
    if fcntl is None:
        return None
    try:
        lock = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except OSError as error:
            if not isinstance(error, BlockingIOError) or time.monotonic() >= end:
                os.close(lock)
                return None
        time.sleep(0.002)


@contextmanager
def _locked(parent: Path) -> Iterator[None]:
    """Runs the block while no other conversion does the same in the directory."""
    lock = _lock_of(parent, _PATIENCE)
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Lets signals wait until the block has ended: their handlers raise."""
    came: list[tuple[int, FrameType | None]] = []
    handlers: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        names = ("SIGINT", "SIGTERM", "SIGHUP")  # of which Windows has not all
        numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
        handlers = {n: signal.getsignal(n) for n in numbers if callable(signal.getsignal(n))}
    for number in handlers:
        signal.signal(number, lambda *arrived: came.append(arrived))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number, frame in came:
            handlers[number](number, frame)
