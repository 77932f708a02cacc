"""`python -m tests.benchmark` compares whole processes with OpenVINO's own converter.

`--warm` compares conversions in one process that has converted before. `--served`, `--control-flow`
and `--decoders` compare the models that Bridge writes with the models of others.
"""

from __future__ import annotations

import argparse
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmark", description=__doc__)
    parser.add_argument("-n", type=int, default=5, help="counted runs of each command")
    parser.add_argument("--no-weights", action="store_true", help="leave out the 1 GiB models")
    parser.add_argument(
        "--model", type=Path, action="append", default=[], metavar="FILE.onnx",
        help="a model of yours, compared with what imports take that any converter needs",
    )  # fmt: skip
    parser.add_argument(
        "--served", nargs="*", metavar="ARCHITECTURE",
        help="nodes and latency of converted exporter models (extra `served`); all, or those named",
    )  # fmt: skip
    parser.add_argument(
        "--control-flow", nargs="*", metavar="TEXT",
        help="latency of converted models of `tests.models`; all, or those whose name has a text",
    )  # fmt: skip
    parser.add_argument(
        "--decoders", action="store_true",
        help="decoders of onnxruntime-genai against OpenVINO's IR of the same PyTorch module",
    )  # fmt: skip
    parser.add_argument(
        "--warm", action="store_true",
        help="conversions in one process against OpenVINO's: exporter models, or each --model",
    )  # fmt: skip
    parser.add_argument(
        "--int8",
        action="store_true",
        help="quantised models, both ways: each --model, or what is exported (extra `served`)",
    )
    parser.add_argument(
        "--checks", action="store_true", help="time of a check and of a quick one of each --model"
    )
    parser.add_argument("--seconds", type=float, default=4, help="time for each ratio")
    parser.add_argument("--kept", type=Path, metavar="FOLDER", help="keeps exporters' models")
    options = parser.parse_args()
    if options.int8:
        from tests.benchmark import int8

        int8.main(options.model, options.kept, 60)
    elif options.checks:
        from tests.benchmark import checks

        checks.main(options.model, options.n)
    elif options.warm:
        from tests.benchmark import warm

        warm.main(options.model, options.kept, options.n)
    elif options.control_flow is not None:
        from tests.benchmark import control_flow

        control_flow.main(options.control_flow, options.seconds, options.kept)
    elif options.decoders:
        from tests.benchmark import decoders

        decoders.main(options.seconds)
    elif options.served is not None:
        from tests.benchmark import served

        served.main(options.served, options.seconds, options.kept)
    else:
        from tests.benchmark import processes

        processes.main(options.n, not options.no_weights, options.model)


main()
