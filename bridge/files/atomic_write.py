"""Writes files whole or not at all, and replaces other files by them.

A conversion writes into a hidden folder of its own beside its destination, `.bridge-xxxxxxxx`:

    .bridge-xxxxxxxx/0.xml    the new files, in the order of their targets
    .bridge-xxxxxxxx/1.bin
    .bridge-xxxxxxxx/old0     the old file of a target

At the end it moves the new files into place. The first file of a model names the others (an `.xml`
its `.bin`), so the old first file leaves first and the new one comes last. A process that is killed
on the way leaves the old files, the new files, or no first file. It never mixes old and new.

Such a folder belongs to the process that made it. No other process reads, moves or removes its
files. They may belong to another user, come out of an archive, or be the old files of a killed
conversion.
"""

import errno
import os
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
except ImportError:  # Windows locks no folders.
    fcntl = None  # type: ignore[assignment]

from bridge.errors import UsageError

_PATIENCE = 10.0
"""Seconds to wait for other conversions that are about to move their files."""

_folders: set[Path] = set()
"""The folders of this process, for `abandon`."""

_moving = threading.Lock()


@contextmanager
def whole(
    *targets: Path,
    notes: list[str],
    check: Callable[[Sequence[Path]], None] = lambda parts: None,
    lasting: bool = False,
) -> Iterator[list[Path]]:
    """Temporary paths for the targets. The files replace the targets when the block ends well. The
    first target is the file that names the others. A path without a written file is left out.

    If the first target is a link, it stays a link, and the file behind it is replaced. For other
    targets the link is replaced, because the file behind it may belong to another model. A new file
    has the permissions of the old one; `notes` says if this is not possible. `check` gets the
    targets at the last moment before the replacement, and raises to prevent it. `lasting` puts the
    new files on the disk before they replace others, in case of a power failure. It takes as long
    as the disk takes, and is for files that could not be made again. An error of the system (no
    permission, no space left) is a UsageError.
    """
    try:
        files = [_followed(targets[0]), *(t.parent.resolve() / t.name for t in targets[1:])]
        if len(set(files)) < len(files):
            raise UsageError(f"{targets[0]}: is a link to a file that is written too")
        with ExitStack() as stack:
            parents = sorted({file.parent for file in files})
            folders = {parent: stack.enter_context(_folder(parent)) for parent in parents}
            made = {folder: os.lstat(folder) for folder in folders.values()}
            parts = [folders[f.parent] / f"{number}{f.suffix}" for number, f in enumerate(files)]
            yield parts
            wrote = [i for i, part in enumerate(parts) if part.exists()]
            moves = [(parts[i], files[i]) for i in wrote]
            if lasting:
                _sync(part for part, _ in moves)
            with _undisturbed(), _moving, ExitStack() as locks:
                for parent in parents:
                    locks.enter_context(locked(parent))
                for folder, its in made.items():
                    if not os.path.samestat(os.lstat(folder), its):
                        raise UsageError(f"{folder}: was replaced while a conversion wrote into it")
                check([targets[i] for i in wrote])
                for part, file in moves:
                    _keep_permissions(part, file, notes)
                _put_in_place(moves)
            if lasting:
                _sync(parents)
    except OSError as error:
        raise UsageError(f"{targets[0]}: cannot be written: {error.strerror or error}") from error


def _followed(target: Path) -> Path:
    """The file that a destination leads to. OSError for a link that somebody else has put into a
    folder of all, as /tmp: Linux follows none for programs that open it."""
    if target.is_symlink() and hasattr(os, "geteuid"):
        link, folder = target.lstat(), target.parent.stat()
        for_all = folder.st_mode & stat.S_ISVTX and folder.st_mode & stat.S_IWOTH
        if for_all and link.st_uid not in (os.geteuid(), folder.st_uid):
            raise PermissionError(errno.EACCES, "it is a link of another user in a folder of all")
    return Path(os.path.realpath(target))


@contextmanager
def locked(parent: Path) -> Iterator[None]:
    """Runs the block while no other conversion moves files into a folder, if the system has locks
    and nobody holds this one for long."""
    lock = None
    with suppress(OSError):
        if fcntl is not None:
            lock = os.open(parent, os.O_RDONLY | os.O_DIRECTORY)
            _wait_for(lock)
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def _wait_for(lock: int) -> None:
    """Locks an open folder; OSError if this is impossible, or another process holds it too long."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                raise
        time.sleep(0.002)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for files that nobody needs afterwards."""
    # Windows keeps a file that somebody has opened, as an engine does with weights.
    made = tempfile.TemporaryDirectory(prefix="bridge-check-", ignore_cleanup_errors=True)
    with made as name, _registered(Path(name)):
        yield Path(name)


def abandon() -> None:
    """Removes the unfinished files of all conversions of this process, which is about to end. Waits
    a moment for a conversion that is moving its files; if it takes longer, its folder stays."""
    if _moving.acquire(timeout=0.2):
        for folder in list(_folders):
            # Under another name, nothing more is written into it meanwhile.
            doomed = folder.with_name(f"{folder.name}.abandoned")
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
    """A new folder to write in, which is removed at the end with its files."""
    folder = parent / f".bridge-{os.urandom(4).hex()}"
    # To others it is closed. On Windows, files would stay closed to them in their places.
    folder.mkdir(0o700 if os.name == "posix" else 0o777)
    made = os.lstat(folder)
    with _registered(folder):
        try:
            yield folder
        finally:
            with _undisturbed(), suppress(OSError):
                if os.path.samestat(os.lstat(folder), made):
                    for path in folder.iterdir() if os.name == "nt" else ():
                        path.chmod(stat.S_IWRITE)  # Windows removes no read-only file.
                    shutil.rmtree(folder)


def _put_in_place(moves: Sequence[tuple[Path, Path]]) -> None:
    """Moves new files to their targets. A single file replaces its target at once. For several,
    the old files first go into the folder: ext4 then need not write out a new file before it takes
    the old name. If a move fails, all moves are undone."""
    if len(moves) == 1:
        with suppress(OSError):  # Windows does not replace a file that is read-only or open.
            os.replace(*moves[0])
            return
    with ExitStack() as undo:
        for number, (part, target) in enumerate(moves):
            if os.path.lexists(target):
                old = part.with_name(f"old{number}")
                os.rename(target, old)
                undo.callback(os.rename, old, target)
                if old.is_dir() and not old.is_symlink():
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
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
    """Gives a new file the owner and the permissions of the file that it will replace."""
    if target.is_symlink() or not target.is_file():
        return
    old = target.stat()
    if not hasattr(os, "O_NOFOLLOW"):  # Windows has one bit of them
        part.chmod(stat.S_IMODE(old.st_mode))
        return
    file = os.open(part, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        new, lost = os.fstat(file), list[str]()
        if old.st_uid != new.st_uid:
            lost += _refused("owner", os.chown, file, old.st_uid, -1)
        if old.st_gid != new.st_gid:
            lost += _refused("group", os.chown, file, -1, old.st_gid)
        os.chmod(file, stat.S_IMODE(old.st_mode))
        for name in os.listxattr(target) if hasattr(os, "listxattr") else ():
            refused = _refused("access list", _copy_attribute, target, file, name)
            lost += refused if "acl" in name else []
    finally:
        os.close(file)
    if lost:
        notes.append(f"{target}: the new file could not keep the old one's {' and '.join(lost)}")


def _refused(what: str, call: Callable[..., None], *arguments: Any) -> list[str]:
    """[`what`] if the system refuses the call that keeps it, else an empty list."""
    try:
        call(*arguments)
    except OSError:
        return [what]
    return []


def _copy_attribute(source: Path, target: int, name: str) -> None:
    os.setxattr(target, name, os.getxattr(source, name))


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Lets signals wait until the block has ended: their handlers raise."""
    came: list[tuple[int, FrameType | None]] = []
    handlers: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        names = ("SIGINT", "SIGTERM", "SIGHUP")  # Windows does not have all of them
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
