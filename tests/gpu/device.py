"""The emulated device: it is built, and a process is told where it is."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

SHIM = Path(__file__).parent / "shim"
LIBRARIES = Path(sys.prefix) / "lib"
PACKAGES = ("openvino", "intel-opencl-rt", "intel-cmplr-lib-rt")


class NoDeviceError(Exception):
    """The emulated device cannot be had; the message names the missing part."""


@cache
def environment() -> dict[str, str]:
    """The environment variables with which OpenVINO in a process that starts now has the device.

    Builds the shim unless it is there. Raises NoDeviceError where something is missing.
    """
    for package in PACKAGES:
        try:
            version(package)
        except PackageNotFoundError:
            raise NoDeviceError(f"the package {package} is missing: pip install '.[gpu]'") from None
    return {
        "EMULATED_GPU_RUNTIME": str(LIBRARIES / "libintelocl.so"),
        "OCL_ICD_FILENAMES": str(built()),
        "OCL_ICD_VENDORS": str(SHIM),  # no other driver
        "LD_LIBRARY_PATH": str(LIBRARIES),
        # OpenVINO brings an older TBB than the runtime needs. The newer one serves both.
        "LD_PRELOAD": str(LIBRARIES / "libtbb.so.12"),
    }


def built() -> Path:
    """The shim's library, in the folder for temporary files under the digest of its sources."""
    if shutil.which("gcc") is None:
        raise NoDeviceError("gcc is missing")
    sources = sorted(path for path in SHIM.iterdir() if path.suffix in (".c", ".h", ".cl"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    library = Path(tempfile.gettempdir()) / f"emulated_gpu_{digest}.so"
    if library.exists():
        return library
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / library.name
        codes = [path.name for path in sources if path.suffix == ".c"]
        flags = ["-O2", "-fPIC", "-shared", "-Wl,-Bsymbolic", "-o", str(made)]
        run = subprocess.run(
            ["gcc", *flags, *codes, "-ldl", "-lpthread"], cwd=SHIM, capture_output=True, text=True
        )
        if run.returncode:
            why = "the OpenCL headers are missing" if "CL/cl" in run.stderr else run.stderr
            raise NoDeviceError(f"{why}: apt-get install gcc libc6-dev opencl-c-headers")
        shutil.move(made, library)
    return library
