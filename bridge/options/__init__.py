"""The options of a conversion, each declared once.

The type of an option is the type of the keyword of `bridge.convert`. The `Option` beside it has the
other facts. The command line, the docstring of `convert` and `docs/commands.md` are made of both.

The class of an option tells its purpose, and which functions have it: `to_onnx`, `to_openvino`, or
`convert` alone.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypedDict, get_args

from bridge.errors import UsageError
from bridge.options.option import CHECK, FILES, IFS, INPUTS, IR, ONNX, STATE, Option, declared

if TYPE_CHECKING:
    from bridge.limits import Limits
    from bridge.neutral.types import Interval

PathLike: TypeAlias = str | os.PathLike[str]

InputShapes: TypeAlias = "Mapping[str, Sequence[int | str | Interval | None]]"
"""Shapes by the input's name. A dimension is a size, a symbol, a range of sizes, or None for any
size."""

GivenValues: TypeAlias = "Mapping[str, Any]"
"""Values by the input's name: a number, a list or an array."""

GivenLimits: TypeAlias = "Limits | Mapping[str, int]"
"""Limits other than the default ones, by name (`bridge.limits.Limits`)."""

OwnInputs: TypeAlias = "PathLike | Mapping[str, Any] | Sequence[PathLike | Mapping[str, Any]]"
"""The user's inputs for a check: values by the input's name, a file or a folder, or several of
these (`bridge.check.inputs.own`)."""

Ranges: TypeAlias = "Mapping[str, tuple[float, float]]"
"""The range of the numbers that are drawn for an input, by the input's name."""

Tolerance: TypeAlias = "float | Mapping[str, float]"
"""A tolerance for all outputs, or by the output's name, with "*" for the others."""

Stateful: TypeAlias = "bool | Mapping[str, str]"
"""Which inputs and outputs become variables: the output by the input's name, or True for the pairs
that have the names of a state."""

DeviceName = Literal["CPU", "GPU", "NPU", "ANY"]
"""A device that an IR may be for; `bridge.targets` has its abilities."""

IfsChoice = Literal["keep", "select", "select-some"]
"""How Ifs are written."""

Watch: TypeAlias = "Callable[[Any, str], None]"
"""Is called after each pass and each quirk, with the model and the name of the pass."""

DEVICES: tuple[str, ...] = get_args(DeviceName)
"""The names of the devices."""

OLDEST = "2024.0"
"""The oldest release of OpenVINO whose faults are known."""


def release_number(release: str) -> tuple[int, int]:
    """The year and the number of an OpenVINO release, which sort by age. Raises UsageError for any
    other text, and for a release before `OLDEST`."""
    match = re.fullmatch(r"(20\d\d)\.(\d)(\.\d+)?", str(release))
    if match is None or (int(match[1]), int(match[2])) < tuple(map(int, OLDEST.split("."))):
        raise UsageError(
            f"`openvino` is {release!r}; it is a release from {OLDEST} on, for example 2025.2"
        )
    return int(match[1]), int(match[2])


def _require_ranks(given: Any) -> None:
    if not isinstance(given, Mapping):
        raise UsageError(f'`output_ranks` maps names to ranks, {{"y": 2}}; it is {given!r}')
    for name, rank in given.items():
        if isinstance(rank, bool) or not isinstance(rank, int) or rank < 0:
            raise UsageError(f'the rank of the output "{name}" must be 0 or more, not {rank!r}')


def _require_states(given: Any) -> None:
    pairs = isinstance(given, Mapping) and all(
        isinstance(name, str) for name in (*given, *given.values())
    )
    if not pairs and not isinstance(given, bool):
        raise UsageError(
            f'`stateful` is True, or maps inputs to outputs, {{"past": "present"}}; it is {given!r}'
        )


def _require_debugging(given: Any) -> None:
    if not (isinstance(given, bool) or callable(given)):
        raise UsageError(f"`debug` is True, or a function to call after each pass, not {given!r}")


class CommonOptions(TypedDict, total=False):
    """Options for writing either format."""

    input_shapes: Annotated[
        "InputShapes | None",
        Option(
            INPUTS,
            "Other shapes for inputs, by name.",
            given="A dimension is a size, a symbol (str), a range (`bridge.Interval(1, 8)`), or "
            "None for any size.",
            written="A dimension is a size, ? for any size, a range like 1..8, or a symbol. "
            "'x[1,-1]' means 'x=[1,?]'.",
            takes=list[str],
            form="NAME=[DIM,...]",
            flags=("--input-shape",),
            brief="Other shapes for inputs, such as 'x=[1,3,?,n,1..8]'.",
        ),
    ]
    input_types: Annotated[
        "Mapping[str, str] | None",
        Option(
            INPUTS,
            "Element types of inputs, by name, for an IR that leaves them open, or of integers for "
            "an input of floats, which are converted. Types are f32, f16, i64, u8, boolean and so "
            "on.",
            takes=list[str],
            form="NAME=TYPE",
            flags=("--input-type",),
            brief="Element types that an IR leaves open, such as x=f32.",
        ),
    ]
    values: Annotated[
        "GivenValues | None",
        Option(
            INPUTS,
            "Inputs that become constants, by name. Conditions, branches and weights that follow "
            "from values and shapes are folded.",
            given="A value is a number, a list or an array.",
            written="For example sr=16000, 'k=[1,2]' or mask=mask.npy.",
            takes=list[str],
            form="NAME=VALUE",
            flags=("--value",),
            brief="Inputs that become constants, such as sr=16000.",
        ),
    ]
    outputs: Annotated[
        "Sequence[str] | None",
        Option(
            INPUTS,
            "Values that become the outputs, by name: the model is cut there.",
            takes=list[str],
            form="NAME,...",
            flags=("--outputs", "--output"),
            brief="Values that become the outputs; the rest is cut off.",
        ),
    ]
    rename: Annotated[
        "Mapping[str, str] | None",
        Option(
            INPUTS,
            "New names for inputs and outputs, by their old names. Other options take the new "
            "names.",
            takes=list[str],
            form="OLD=NEW",
            brief="New names for inputs and outputs.",
        ),
    ]
    trust_symbols: Annotated[
        "bool",
        Option(
            INPUTS,
            "Sizes that inputs declare by one symbol are believed to be equal, if an If compares "
            "them.",
            default=False,
            brief="Believe that sizes of one symbol are equal.",
        ),
    ]
    reverse_channels: Annotated[
        "Sequence[str] | None",
        Option(
            INPUTS,
            "Inputs whose three channels come in the reverse order, BGR for RGB. `mean` and "
            "`scale` are in the order of the model.",
            takes=list[str],
            form="NAME",
            brief="Inputs with the reverse order of channels, BGR for RGB.",
        ),
    ]
    mean: Annotated[
        "Mapping[str, float | Sequence[float]] | None",
        Option(
            INPUTS,
            "The mean to subtract from an input, by its name: one number, or one for each channel. "
            "The model gets a layer for it, and for `scale` and `layout`.",
            written="For example x=127.5 or 'x=[123.68,116.78,103.94]'.",
            takes=list[str],
            form="NAME=X",
            brief="The mean to subtract from an input: 'x=[123.68,116.78,103.94]'.",
        ),
    ]
    scale: Annotated[
        "Mapping[str, float | Sequence[float]] | None",
        Option(
            INPUTS,
            "The divisor of an input, after `mean`: one number, or one for each channel.",
            takes=list[str],
            form="NAME=X",
            brief="The divisor after that: x=58.8.",
        ),
    ]
    layout: Annotated[
        "Mapping[str, str] | None",
        Option(
            INPUTS,
            "The layout of an input, by its name: a letter for each axis, C for the channels. "
            '"NHWC->NCHW" is for a model of NHWC whose new input is NCHW.',
            takes=list[str],
            form="NAME=LAYOUT",
            brief="The layout of an input, also a new one: 'x=NHWC->NCHW'.",
        ),
    ]
    ifs: Annotated[
        "IfsChoice | None",
        Option(
            IFS,
            'How Ifs are written. "keep": as Ifs. "select": both branches run, and one result is '
            "selected; a model with an If that does not allow it is refused. "
            '"select-some": such an If is kept. Without it: "select-some" for GPU, else "keep".',
            takes=str,
            choices=get_args(IfsChoice),
            brief="Keep Ifs, or run both branches and select.",
        ),
    ]
    weights: Annotated[
        "PathLike | None",
        Option(
            FILES,
            "The `.bin` file of an IR, if it does not stand beside the `.xml` under its name.",
            takes=Path,
            form="FILE.bin",
            brief="The .bin file of an IR, if it is not beside the .xml.",
        ),
    ]
    limits: Annotated[
        "GivenLimits | None",
        Option(
            FILES,
            "Higher limits of what a conversion may cost, by name; the message that refuses a "
            "model names the limit.",
            given="The names are the fields of `bridge.limits.Limits`.",
            written="For example nodes=1000000.",
            takes=list[str],
            form="NAME=N",
            flags=("--limit",),
            brief="A higher limit of what a conversion may cost.",
        ),
    ]


class OnnxOptions(CommonOptions, total=False):
    """Options for writing ONNX."""

    opset: Annotated[
        "int | None",
        Option(
            ONNX,
            "The operator set to write, 11 or newer. The default is the source's own if it is ONNX "
            "or an IR that Bridge made of ONNX, else 21.",
            takes=int,
            form="N",
            brief="The operator set to write, 11 or newer.",
        ),
    ]
    standard_operators: Annotated[
        "bool",
        Option(
            ONNX,
            "Operators of other domains, as onnxruntime's com.microsoft, are written as operators "
            "of the standard.",
            default=False,
            brief="Write only operators of the standard.",
        ),
    ]
    decompress: Annotated[
        "bool",
        Option(
            ONNX,
            "Weights that are stored as f16, behind a Cast, are written as plain f32.",
            default=False,
            brief="Write weights that are stored as f16 as f32.",
        ),
    ]


class OnnxFileOptions(OnnxOptions, total=False):
    """Options for writing files of ONNX."""

    external_data: Annotated[
        "bool | None",
        Option(
            ONNX,
            "Constants are stored in a file beside the model. The default is to do so from 1 GiB "
            "on.",
            brief="Store constants beside the model.",
        ),
    ]


class IrOptions(CommonOptions, total=False):
    """Options for writing IR."""

    keep_branches: Annotated[
        "bool",
        Option(
            IFS,
            "No branch of an If is pruned. OpenVINO may then be unable to run the model. A branch "
            "that contradicts itself is refused.",
            default=False,
            brief="Prune no branch of an If.",
        ),
    ]
    strict: Annotated[
        "bool",
        Option(
            IFS,
            "A model is refused if data could take a branch that has to be pruned. Without this "
            "option the report says what data must fulfil (`assumed`).",
            default=False,
            brief="Prune no branch that data could take.",
        ),
    ]
    device: Annotated[
        "DeviceName",
        Option(
            IR,
            "The plugin of OpenVINO that the file is for. A model that the plugin cannot run is "
            'refused. "ANY" writes plain meaning, for other readers.',
            takes=str,
            default="CPU",
            choices=DEVICES,
            brief="The device; ANY is for other readers.",
        ),
    ]
    openvino: Annotated[
        "str | None",
        Option(
            IR,
            'The oldest release of OpenVINO that the file is for, for example "2024.6". Faults of '
            "that release are worked round too.",
            takes=str,
            form="RELEASE",
            check=release_number,
            brief="The oldest OpenVINO to read it, such as 2024.6.",
        ),
    ]
    compress_to_fp16: Annotated[
        "bool",
        Option(
            IR,
            "f32 constants, also those stored as bf16, are stored as f16.",
            default=False,
            brief="Store f32 constants as f16.",
        ),
    ]
    keep_metadata: Annotated[
        "bool",
        Option(
            IR,
            "Metadata that a tool wrote for debugging is kept: PyTorch's exporter writes stack "
            "traces.",
            default=False,
            brief="Keep metadata for debugging, such as stack traces.",
        ),
    ]
    output_ranks: Annotated[
        "Mapping[str, int] | None",
        Option(
            IR,
            "The ranks of outputs that may have several, by name. Without it, an output y whose "
            "rank depends on data becomes y.data and y.shape.",
            given="`unpack` makes one array of the two.",
            takes=list[str],
            form="NAME=RANK",
            flags=("--output-rank",),
            check=_require_ranks,
            brief="The ranks of outputs that may have several.",
        ),
    ]
    stateful: Annotated[
        "Stateful",
        Option(
            STATE,
            "Inputs and outputs that are a state between calls become variables (ReadValue, "
            "Assign), as the caches of language models.",
            given="True finds the pairs by their names; a mapping gives the output by the input's "
            "name.",
            written="The pairs are found by their names, past_key_values.0.key and present.0.key.",
            default=False,
            check=_require_states,
            brief="Make variables of states, such as caches of a language model.",
        ),
    ]
    beam_idx: Annotated[
        "bool",
        Option(
            STATE,
            "A stateful model gets the inputs that OpenVINO GenAI gives: `beam_idx` reorders its "
            "sequences, and `position_ids` places the words of a decoder of onnxruntime-genai.",
            default=False,
            brief="Add the inputs that OpenVINO GenAI gives.",
        ),
    ]
    one_decoder: Annotated[
        "bool",
        Option(
            STATE,
            "A stateful model keeps one of the two decoders of a merged decoder, the one for later "
            "calls. The result is right if both compute the same while the states are empty; a "
            "check runs both.",
            default=False,
            brief="Keep one decoder of a merged decoder.",
        ),
    ]


class ConvertOptions(OnnxFileOptions, IrOptions, total=False):
    """The options of `convert`."""

    force: Annotated[
        "bool",
        Option(
            FILES,
            "Overwrites a file that is read-only or of another kind, a `.bin` or `.data` file of "
            "another model, or, in a conversion, the source itself.",
            default=False,
            brief="Overwrite files that are read-only or of other models.",
        ),
    ]
    debug: Annotated[
        "bool | Watch | None",
        Option(
            FILES,
            "The graph is verified after each pass.",
            given="A function is called with the model and the pass's name then, too.",
            written="The traceback of an error is shown.",
            default=False,
            check=_require_debugging,
            brief="Verify the graph after each pass; show tracebacks.",
        ),
    ]
    progress: Annotated[
        "Callable[[str], None] | None",
        Option(FILES, "A function that is called with the name of each step.", takes=None),
    ]


class CheckOptions(ConvertOptions, total=False):
    """The options of `check`."""

    samples: Annotated[
        "int",
        Option(
            CHECK,
            "How many inputs are drawn. Others are sought for branches. With 0 and inputs of your "
            "own, neither is done.",
            takes=int,
            form="N",
            default=4,
            least=0,
            brief="How many inputs are drawn.",
        ),
    ]
    seed: Annotated[
        "int", Option(CHECK, "The seed of the inputs.", takes=int, form="N", default=0, least=0)
    ]
    inputs: Annotated[
        "OwnInputs | None",
        Option(
            CHECK,
            "Your own inputs, which run first: an .npz with an array for each input, an "
            ".npy or a picture (with Pillow) for the only one, a folder "
            "of such files, or a folder with test_data_set_*/input_*.pb, whose outputs are "
            "compared too.",
            given="A mapping has the arrays by the input's name; a sequence has several inputs.",
            written="May be repeated.",
            takes=list[Path],
            form="PATH",
            brief="Your own inputs: .npz files, or a folder of them.",
        ),
    ]
    ranges: Annotated[
        "Ranges | None",
        Option(
            CHECK,
            "The lowest and the highest number that is drawn for an input, by its name.",
            written="For example x=0..1.",
            takes=list[str],
            form="NAME=LOW..HIGH",
            flags=("--range",),
            brief="The range of numbers for an input, such as x=0..1.",
        ),
    ]
    sizes: Annotated[
        "Mapping[str, int | Interval] | None",
        Option(
            CHECK,
            "Sizes of dimensions, or ranges of sizes, by their symbols or as `input.axis`.",
            written="For example batch=2 or x.0=2..8.",
            takes=list[str],
            form="DIM=N",
            flags=("--size",),
            brief="Sizes of open dimensions, such as batch=2 or x.0=2..8.",
        ),
    ]
    fills: Annotated[
        "Mapping[str, float] | None",
        Option(CHECK, "A number that fills an input, by the input's name.", takes=None),
    ]
    rtol: Annotated[
        "Tolerance",
        Option(
            CHECK,
            "The relative tolerance, of all outputs or of one.",
            given='A mapping has it by the output\'s name, with "*" for the others.',
            written="The default is 0.001.",
            takes=list[str],
            form="[OUTPUT=]X",
            brief="The relative tolerance; the default is 0.001.",
        ),
    ]
    atol: Annotated[
        "Tolerance",
        Option(
            CHECK,
            "The absolute tolerance, as the relative one.",
            written="The default is 1e-05.",
            takes=list[str],
            form="[OUTPUT=]X",
            brief="The absolute tolerance; the default is 1e-05.",
        ),
    ]
    timeout: Annotated[
        "float",
        Option(
            CHECK,
            "The time in seconds that one run may take, or an engine to load a model.",
            takes=float,
            form="SECONDS",
            default=60.0,
            least=0.1,
            brief="The longest time of a run.",
        ),
    ]
    quick: Annotated[
        "bool",
        Option(
            CHECK,
            "Two inputs alone: no branches are sought or forced, nothing is run with the engines' "
            "defaults, and no difference is explained. The first line says which branches were "
            "not shown.",
            default=False,
            brief="Run two inputs, and seek no branches.",
        ),
    ]
    budget: Annotated[
        "int",
        Option(
            CHECK, "How many runs may look for inputs by chance.", takes=None, default=1500, least=0
        ),
    ]
    save_inputs: Annotated[
        "PathLike | None",
        Option(
            CHECK,
            "A new folder for all inputs that ran: input-N.npz, or input-N-differs.npz if an "
            "output differs.",
            takes=Path,
            form="DIR",
            brief="A new folder for all inputs that ran.",
        ),
    ]
    reduce: Annotated[
        "PathLike | None",
        Option(
            CHECK,
            "A file for the smallest part of the model whose conversion still differs or fails. "
            "Its inputs are written beside it, as .npz.",
            takes=Path,
            form="FILE",
            brief="A file for the smallest part that differs.",
        ),
    ]


def require_options(options: ConvertOptions, format: str, target: Path | None = None) -> None:
    """Raises UsageError for an option that the format does not have, and for values that are wrong
    for any model."""
    other = {"onnx": IrOptions, "ir": OnnxFileOptions}[format]
    for name, option in declared(other):
        given = options.get(name)
        if name in CommonOptions.__annotations__ or given in (None, option.default):
            continue
        meant = "IR (.xml)" if format == "onnx" else "ONNX (.onnx)"
        raise UsageError(f"`{name}` is for writing {meant}; the destination is {target}")
    require_values(ConvertOptions, options)
    for name in ("beam_idx", "one_decoder"):
        if options.get(name) and options.get("stateful", False) is False:
            raise UsageError(f"`{name}` is for a stateful model: set `stateful` too")


def require_values(options: type, given: Mapping[str, Any]) -> None:
    """Raises UsageError for a value that an option of this class does not take."""
    for name, option in declared(options):
        value = given.get(name)
        if value is None:
            continue
        if option.choices and value not in option.choices:
            raise UsageError(f"`{name}` is one of {', '.join(option.choices)}, not {value!r}")
        if option.least is not None and value < option.least:
            raise UsageError(f"`{name}` is {value}; it must be {option.least} or more")
        if option.check is not None:
            option.check(value)
