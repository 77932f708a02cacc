"""What the processor at hand can do: some faults of the engines are those of one set of kernels."""

from __future__ import annotations

from pathlib import Path


def flags(path: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    """The processor's features by Linux's names, such as "avx2"; none where Linux is not."""
    if not path.exists():
        return frozenset()
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("flags"):
            return frozenset(line.partition(":")[2].split())
    return frozenset()


_FLAGS = flags()
FEATURES = {
    "avx512": "avx512f" in _FLAGS,
    # OpenVINO's CPU plugin computes bf16 as it is; without, in f32.
    "bf16": not _FLAGS.isdisjoint({"avx512f", "avx_ne_convert"}),
    # Products of u8 and i8 are added in 32 bits; without, by pairs in 16 bits, which saturate.
    "vnni": not _FLAGS.isdisjoint({"avx512_vnni", "avx_vnni"}),
}
"""Whether the engines find what their kernels differ by."""
