"""Files that are written whole or not at all, and how they take the place of others.

A conversion writes into a folder of its own beside its destination, `.bridge-xxxxxxxx`, and moves
what it wrote into place at the end. Of the files of a model the first names the others (an `.xml`
its `.bin`), so it leaves first and comes last: whoever is killed on the way leaves the old files,
the new ones, or the first one missing, never one of each.

The folder's name tells the next run what to do with what a killed one left: where all in it is
`.whole`, the move is finished, and else the folder is removed. A lock on the folder says that its
conversion is still alive. While large files are written, another process stands by to remove the
folder at once (`bridge/guard.py`).
"""

from __future__ import annotations

import errno
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
except ImportError:  # Windows has no locks of this kind: what is left there stays
    fcntl = None  # type: ignore[assignment]

from bridge.errors import UsageError
from bridge.guard import guarded

_MARK = ".bridge-"
_NAME = r"\.bridge-[a-z0-9_]{8}(\.whole|\.done)?"
_PATIENCE = 10.0
"""Seconds to wait for other conversions that are about to move their files."""

_LARGE = 1 << 24
"""Bytes that take longer to write than a process takes to start."""

_folders: set[Path] = set()
_moving = threading.Lock()


@contextmanager
def whole(
    *targets: Path,
    notes: list[str],
    check: Callable[[Sequence[Path]], None] = lambda parts: None,
    lasting: bool = False,
    size: int = 0,
) -> Iterator[list[Path]]:
    """Temporary paths for the targets, which take their places when the block ends well; the first
    target is the file that names the others. A path at which the block wrote nothing is left out.

    A target that is a link stays one: the file that it leads to is replaced. A new file has the
    permissions of the one it replaces; `notes` says where that cannot be. `check` is called with
    the targets that will be written at the last moment before, and raises to prevent it. `lasting`
    has the new files on the disk before they replace others, for a power failure: it costs what the
    disk takes, and is for what could not be made again. `size` is about how many bytes will be
    written: of many, a process that is killed meanwhile leaves none. What the system refuses (no
    permission, no space left) is a UsageError.
    """
    try:
        files = [target.resolve() for target in targets]
        with ExitStack() as stack:
            folders: dict[Path, _Folder] = {}
            for file in files:
                if file.parent not in folders:
                    folders[file.parent] = stack.enter_context(_Folder(file.parent))
            homes = [folders[file.parent] for file in files]
            parts = [
                h.path / f"part{i}{f.suffix}"
                for i, (h, f) in enumerate(zip(homes, files, strict=True))
            ]
            with ExitStack() as guards:
                for folder in folders.values() if size >= _LARGE else ():
                    guards.enter_context(guarded(folder.path))
                yield parts
            wrote = [i for i, part in enumerate(parts) if part.exists()]
            if lasting:
                _sync(parts[i] for i in wrote)
            with _undisturbed(), _moving, ExitStack() as locks:
                for parent in sorted(folders):
                    locks.enter_context(_locked(parent))
                check([targets[i] for i in wrote])
                _put_in_place([(homes[i], parts[i].name, files[i]) for i in wrote], notes)
            if lasting:
                _sync(folders)
    except OSError as error:
        raise UsageError(f"{targets[0]}: cannot be written: {error.strerror or error}") from error


@contextmanager
def settled(target: Path) -> Iterator[None]:
    """Runs the block while no other conversion moves its files beside `target`, after what killed
    ones left there is done away with."""
    parent = target.resolve().parent
    with _locked(parent):
        _clear(parent)
        yield


class _Folder:
    """The folder that a conversion writes in, removed at the end."""

    def __init__(self, parent: Path) -> None:
        with _locked(parent):
            _clear(parent)
            self.path = Path(tempfile.mkdtemp(prefix=_MARK, dir=parent))
            self._lock = _lock_of(self.path)
        _folders.add(self.path)

    def __enter__(self) -> _Folder:
        return self

    def __exit__(self, *error: object) -> None:
        with _undisturbed():
            self.mark(".done")
            shutil.rmtree(self.path, ignore_errors=True)
            _folders.discard(self.path)
            if self._lock is not None:
                os.close(self._lock)

    def mark(self, suffix: str) -> None:
        """Says by its name how far the conversion is."""
        with suppress(OSError):
            marked = self.path.with_suffix(suffix)
            os.rename(self.path, marked)
            _folders.add(marked)
            _folders.discard(self.path)
            self.path = marked


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for files that nobody needs afterwards."""
    with tempfile.TemporaryDirectory(prefix="bridge-check-") as name:
        folder = Path(name)
        _folders.add(folder)
        try:
            yield folder
        finally:
            _folders.discard(folder)


def abandon() -> None:
    """Removes what all conversions of this process have written so far, for a process that is
    about to end. Waits a moment for one that moves its files, and leaves them to the next run
    where that takes longer."""
    if _moving.acquire(timeout=0.2):
        for folder in list(_folders):
            # Under another name, nothing more is written into it meanwhile.
            doomed = folder.with_suffix(".done")
            with suppress(OSError):
                folder.rename(doomed)
            shutil.rmtree(doomed, ignore_errors=True)


def _put_in_place(moves: Sequence[tuple[_Folder, str, Path]], notes: list[str]) -> None:
    """Moves new files, by their names in a folder, to where they belong, and those that stand
    there into the folder: so ext4 need not write a new file out before it takes an old one's name.
    What stood there before stands there again where a move fails."""
    if not moves:
        return
    sealed = []
    for index, (folder, name, target) in reversed(list(enumerate(moves))):
        (folder.path / str(index)).mkdir()
        _keep_permissions(folder.path / name, target, notes)
        os.rename(folder.path / name, folder.path / str(index) / target.name)
        sealed.append((folder, index, target))
    sealed.reverse()
    if len({id(folder) for folder, _, _ in sealed}) == 1:
        sealed[0][0].mark(".whole")
    moved: list[tuple[Path, Path]] = []
    made: list[Path] = []
    try:
        for folder, index, target in sealed:
            if target.exists():
                old = folder.path / f"old{index}"
                os.replace(target, old)
                moved.append((old, target))
        for folder, index, target in reversed(sealed):
            os.replace(folder.path / str(index) / target.name, target)
            made.append(target)
    except BaseException:
        for target in reversed(made):
            target.unlink(missing_ok=True)
        for old, target in reversed(moved):
            os.replace(old, target)
        raise


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
    for name, wanted, given in (
        ("owner", old.st_uid, new.st_uid),
        ("group", old.st_gid, new.st_gid),
    ):
        if wanted != given:
            ids = (wanted, -1) if name == "owner" else (-1, wanted)
            try:
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
    """Removes what killed conversions left in a directory; a move that one had begun is finished.
    The directory is locked."""
    with suppress(OSError):
        for entry in list(os.scandir(parent)):
            if not entry.name.startswith(_MARK) or not re.fullmatch(_NAME, entry.name):
                continue
            if not entry.is_dir(follow_symlinks=False):
                continue
            if hasattr(os, "geteuid") and entry.stat().st_uid != os.geteuid():
                continue
            folder = parent / entry.name
            lock = _lock_of(folder)
            if lock is None:
                continue
            try:
                if folder.suffix == ".whole":
                    _finish(folder)
                    folder = folder.rename(folder.with_suffix(".done"))
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def _finish(folder: Path) -> None:
    """Moves the files of a killed conversion into place, unless somebody has written the first of
    them since."""
    parts = sorted(path for n in folder.glob("[0-9]") for path in n.iterdir())
    if not parts or parts[0].parent.name != "0":
        return
    if os.path.lexists(folder.parent / parts[0].name):
        return
    for part in reversed(parts):
        os.replace(part, folder.parent / part.name)


def _lock_of(folder: Path, wait: float = 0) -> int | None:
    """An open file that holds the lock of a directory; None where another one holds it for
    longer than `wait` seconds, or the system has no such locks."""
    if fcntl is None:
        return None
    try:
        lock = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    end = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES) or time.monotonic() >= end:
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
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, signal.SIGINT)  # Windows has no SIGHUP
            handler = signal.getsignal(number)
            if callable(handler) and number not in handlers:
                handlers[number] = handler
                signal.signal(number, lambda *arrived: came.append(arrived))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number, frame in came:
            handlers[number](number, frame)
