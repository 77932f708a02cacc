"""The places of an ONNX model's tensors: in its own file, and in external files beside it."""

import os
import stat
from pathlib import Path

from bridge.errors import InvalidModelError
from bridge.files import Stamp, bytes_in, stamp_of
from bridge.limits import budget
from bridge.neutral.tensor import FileRange
from bridge.onnx_format.wire import SELF
from bridge.suggestions import about_short_file


class ModelFiles:
    """The file of a model (None: it is in memory) and its external files, each with the stamp from
    its first use."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.stamps: dict[str, Stamp] = {}
        self._places: dict[str, str] = {}
        if file is not None:
            self._note(str(file))

    def range(self, location: str, offset: int, length: int, where: str) -> FileRange:
        """`length` bytes at `offset` of the file that a tensor calls `location`; InvalidModelError
        if they are none, or the file lies outside the model's folder."""
        path = self._places.get(location)
        if path is None:
            path = self._places[location] = self.place(location, where)
        size = self.stamps[path][2]
        if offset + length > size:
            raise InvalidModelError(
                f"{where}: its external data is missing: {path} holds no {length} bytes at "
                f"{offset}; {about_short_file(path)}"
            )
        return FileRange(path, offset, length)

    def place(self, location: str, where: str) -> str:
        """The path of a file, links resolved. It must lie in the model's folder: the folder of the
        given path, or the folder of the file behind a link. Some stores keep all files of a model
        in one place and link to them (the cache of Hugging Face does)."""
        if self.file is None:
            raise InvalidModelError(
                f"{where}: its data is in the external file {location}; give the model as a path, "
                "or load the external data first"
            )
        if location == SELF:
            return str(self.file)
        folder = self.file.parent
        outside = InvalidModelError(f"{where}: the external file {location} is outside {folder}")
        if os.path.isabs(location) or "\0" in location:
            raise outside
        if not _lies_in(os.path.normpath(folder / location), str(folder)):
            raise outside
        path = os.path.realpath(folder / location)
        homes = os.path.realpath(folder), os.path.dirname(os.path.realpath(self.file))
        if not any(_lies_in(path, home) for home in homes):
            raise InvalidModelError(
                f"{where}: the external file {location} is a link to {path}, outside {folder}"
            )
        try:
            self._note(path)
            regular = stat.S_ISREG(os.stat(path).st_mode)
        except OSError as error:
            raise InvalidModelError(
                f"{where}: the external file {path} cannot be read: {error.strerror}"
            ) from error
        if not regular:
            raise InvalidModelError(f"{where}: the external file {location} is no regular file")
        return path

    def _note(self, path: str) -> None:
        self.stamps[path] = stamp_of(path)
        budget().allow(size=bytes_in(path))


def _lies_in(path: str, folder: str) -> bool:
    try:
        return os.path.commonpath([path, folder]) == os.path.normpath(folder)
    except ValueError:  # on Windows: another drive
        return False
