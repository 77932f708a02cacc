"""Repeats tests of the formats and of the command line without the parts of Python that only POSIX
has.

They stand in for Windows, where the repository's workflow runs them too.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

import bridge.files.atomic_write
from tests.cli import test_cli
from tests.formats import test_atomic_write, test_sources, test_storage

ONLY_POSIX = (
    "chown", "copy_file_range", "fork", "getegid", "geteuid", "getgid", "getpgid", "getuid",
    "getxattr", "lchown", "listxattr", "mkfifo", "openpty", "posix_fallocate", "pread", "preadv",
    "pwrite", "sched_getaffinity", "sendfile", "setsid", "setxattr", "statvfs", "SEEK_DATA",
    "SEEK_HOLE", "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK",
)  # fmt: skip
"""Names of `os` that Windows does not have."""

AGAIN = (
    test_atomic_write.test_files_of_nobody_are_not_overwritten,
    test_atomic_write.test_data_that_two_models_share,
    test_atomic_write.test_folders_that_look_like_those_of_bridge_stay,
    test_atomic_write.test_what_replaces_its_source_is_on_the_disk_first,
    test_cli.test_an_interrupted_replacement,
    test_cli.test_both_ways,
    test_cli.test_onto_itself,
    test_cli.test_onto_itself_with_external_data,
    test_cli.test_weights_under_another_name,
    test_cli.test_what_stood_at_the_destination,
    test_sources.test_the_bytes_of_an_ir_have_its_weights_in_memory,
    test_storage.test_a_range_beyond_the_end,
    test_storage.test_holes_stay_holes,
)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes the calls. By now pytest has made the folder, for which it needs to know the user."""
    for name in ONLY_POSIX:
        monkeypatch.delattr(os, name, raising=False)
    for name in ("SIGHUP", "SIGQUIT", "SIGALRM", "pthread_sigmask", "setitimer"):
        monkeypatch.delattr(signal, name, raising=False)
    monkeypatch.setattr(bridge.files.atomic_write, "fcntl", None)


for _test in AGAIN:
    globals()[_test.__name__] = _test
