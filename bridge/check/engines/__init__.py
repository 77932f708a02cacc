"""The engines that run models behind one small protocol, each in a process of its own.

- `protocol`: a `Session` is a model that is ready to run; what it can be asked, and its errors.
- `onnxruntime`, `openvino`, `reference` (with operators `corrected`): the engines themselves.
- `remote`: the same in another process, with limits of time.
- `adapters`: a session with other names, types, inputs or outputs; `variables` of IRs as these.
- `sessions`: opens files, each in the engine of its format, and owns what is open.
"""

from bridge.check.engines.onnxruntime import OnnxRuntime
from bridge.check.engines.openvino import OpenVino
from bridge.check.engines.protocol import (
    EndlessError,
    Engine,
    EngineError,
    LacksOperatorError,
    Session,
    UndefinedCallError,
    ValueInfo,
)
from bridge.check.engines.reference import Reference

__all__ = [
    "EndlessError",
    "Engine",
    "EngineError",
    "LacksOperatorError",
    "OnnxRuntime",
    "OpenVino",
    "Reference",
    "Session",
    "UndefinedCallError",
    "ValueInfo",
]
