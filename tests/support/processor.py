"""Features of this processor: some faults of the engines occur in one set of kernels alone."""

from __future__ import annotations

from pathlib import Path


def flags(path: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    """The processor's features by Linux's names, such as "avx2"; empty on other systems."""
    if not path.exists():
        return frozenset()
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("flags"):
            return frozenset(line.partition(":")[2].split())
    return frozenset()


_FLAGS = flags()
FEATURES = {
    "avx512": "avx512f" in _FLAGS,
    # With it OpenVINO's CPU plugin computes in bf16, without it in f32.
    "bf16": not _FLAGS.isdisjoint({"avx512f", "avx_ne_convert"}),
    # With it products of u8 and i8 are added in 32 bits, without it by pairs in 16 bits, which
    # saturate.
    "vnni": not _FLAGS.isdisjoint({"avx512_vnni", "avx_vnni"}),
}
"""Whether the processor has each feature that changes the engines' kernels."""
