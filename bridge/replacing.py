"""Files that are written whole or not at all, and how they take the place of others.

A conversion writes files that have no name, where the system has such: they vanish with whoever
writes them, however it ends. At the end they get their names in a folder of the conversion's own
beside its destination, `.bridge-xxxxxxxx`, and are moved into place from there; elsewhere they are
written into this folder from the start. Of the files of a model the first names the others (an
`.xml` its `.bin`), so it leaves first and comes last: whoever is killed on the way leaves the old
files, the new ones, or the first one missing, never one of each.

The folder's name tells the next run what to do with what a killed one left: where all in it is
`.whole`, the move is finished, and else the folder is removed. A lock on the folder says that its
conversion is still alive.
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

_MARK = ".bridge-"
_NAME = r"\.bridge-[a-z0-9_]{8}(\.whole|\.done)?"
_PATIENCE = 10.0
"""Seconds to wait for other conversions that are about to move their files."""

_OPEN_FILES = Path("/proc/self/fd")
"""Where Linux shows the open files of a process: whoever opens one, opens the same file anew."""

_folders: set[Path] = set()
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
            parts = _Parts(files, stack)
            yield parts.paths
            wrote = [i for i, path in enumerate(parts.paths) if _is_written(path)]
            if lasting:
                _sync(parts.paths[i] for i in wrote)
            with _alone(parts.parents):
                check([targets[i] for i in wrote])
                named = [(*parts.named(i), files[i]) for i in wrote]
                if lasting:  # of a file without a name, btrfs writes no more than its content
                    _sync(folder.path / name for folder, name, _ in named)
                _put_in_place(named, notes)
            if lasting:
                _sync(parts.parents)
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


class _Parts:
    """Temporary files of a conversion, one for each of `files`: without names where the system has
    them, else in folders, those of all or of none. They are gone when `stack` ends."""

    def __init__(self, files: Sequence[Path], stack: ExitStack) -> None:
        self.parents = sorted({file.parent for file in files})
        self._files = files
        self._stack = stack
        self._folders: dict[Path, _Folder] = {}
        for parent in self.parents:
            with _locked(parent):
                _clear(parent)
        with _alone(self.parents):
            self._unnamed = all(map(_takes_unnamed, self.parents))
            self.paths = [self._path(i) for i in range(len(files))]

    def named(self, index: int) -> tuple[_Folder, str]:
        """The folder that a written file is in, and its name there; if it has none, it gets it."""
        file = self._files[index]
        folder, name = self._folder(file.parent), f"part{index}{file.suffix}"
        if self._unnamed:
            _give_name(self.paths[index], folder.path / name)
        return folder, name

    def _path(self, index: int) -> Path:
        file = self._files[index]
        if self._unnamed:
            return self._stack.enter_context(_unnamed(file.parent))
        return self._folder(file.parent).path / f"part{index}{file.suffix}"

    def _folder(self, parent: Path) -> _Folder:
        if parent not in self._folders:
            self._folders[parent] = self._stack.enter_context(_Folder(parent))
        return self._folders[parent]


@contextmanager
def _unnamed(parent: Path) -> Iterator[Path]:
    """The path of a new file that has no name in the directory that it belongs to."""
    file = os.open(parent, os.O_TMPFILE | os.O_RDWR, 0o666)
    try:
        # To open it for writing truncates it and so sets its time, even if nothing is written:
        # this tells an empty file that is wanted from one that nobody touched.
        os.utime(file, ns=(time.time_ns(), 0))
        yield _OPEN_FILES / str(file)
    finally:
        os.close(file)


def _is_written(path: Path) -> bool:
    """Whether a file has been opened for writing, if it has no name, or else made."""
    return path.exists() and path.stat().st_mtime_ns != 0


def _give_name(path: Path, name: Path) -> None:
    """Gives a name to a file that has none."""
    # The path is a link to be followed, which Python asks for only where a directory is given; as
    # the path is absolute, any number will do.
    os.link(path, name, src_dir_fd=int(path.name), follow_symlinks=True)


def _takes_unnamed(parent: Path) -> bool:
    """Whether files without a name do in a directory all that is asked of them, which depends on
    the system, the file system and what a sandbox permits: it is tried."""
    if not hasattr(os, "O_TMPFILE"):
        return False
    try:
        with _Folder(parent) as folder, _unnamed(parent) as path:
            path.write_bytes(b"")
            _give_name(path, folder.path / "named")
            return _is_written(path)
    except OSError:
        return False


class _Folder:
    """A folder for files on their way, removed at the end. Its parent is locked."""

    def __init__(self, parent: Path) -> None:
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
def _alone(parents: Sequence[Path]) -> Iterator[None]:
    """Runs the block while no other conversion does the same in these directories, and no signal
    disturbs it."""
    with _moving, ExitStack() as locks:
        for parent in parents:
            locks.enter_context(_locked(parent))
        with _undisturbed():
            yield


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
