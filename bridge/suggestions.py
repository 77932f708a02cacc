"""Suggestions for wrong input: names and suffixes with small errors, other files."""

from collections.abc import Iterable
from pathlib import Path

from bridge.errors import InvalidModelError


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The one of `known` that a name was probably meant to be."""
    from difflib import get_close_matches

    found = get_close_matches(name.lower(), list(known), 1, 0.6)
    return found[0] if found else None


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """The suggestion for a name that a model does not have, for example of an input."""
    names = list(known)
    meant = nearest(name, names)
    listed = ", ".join([*names[:MOST_LISTED], *["..."] * (len(names) > MOST_LISTED)])
    help = f'did you mean "{meant}"?' if meant else f"it has {listed}"
    return f'the model has no {what} "{name}"; {help}'


MOST_LISTED = 20
"""Names that a message lists."""


_PYTORCH = (
    "it is PyTorch's; export it first: torch.onnx.export(model, inputs, 'model.onnx', dynamo=True)"
)
_TENSORFLOW = "it is TensorFlow's; convert it first, with tf2onnx for example"
_PACKED = "it is packed; unpack it first"
_FOREIGN = {
    **dict.fromkeys((".pt", ".pth", ".pt2", ".ckpt", ".jit"), _PYTORCH),
    **dict.fromkeys((".pb", ".h5", ".keras", ".tflite"), _TENSORFLOW),
    **dict.fromkeys((".zip", ".gz", ".tgz", ".tar", ".7z"), _PACKED),
    ".bin": "it has the weights of an IR; give the .xml that stands beside it",
    ".data": "it has the constants of an ONNX model; give the .onnx that stands beside it",
    ".safetensors": "it has weights alone; export the model that they belong to",
    ".gguf": "it has weights alone; export the model that they belong to",
    ".pdmodel": "it is Paddle's; convert it first, with paddle2onnx for example",
    ".json": "it is no model; give the .onnx or the .xml",
}


def about_suffix(path: Path, known: Iterable[str], is_written: bool) -> str:
    """The error for a suffix that is none of `known`, with a suggestion."""
    suffix = path.suffix.lower()
    if suffix in _FOREIGN:
        return "Bridge writes these two alone" if is_written else _FOREIGN[suffix]
    meant = nearest(suffix, known) if suffix else None
    if meant is not None:
        return f"did you mean {path.with_suffix(meant).name}?"
    return "the suffix says which format it is"


_LFS = b"version https://git-lfs"


def about_short_file(path: str | Path, otherwise: str = "is it truncated?") -> str:
    """The likely error in a file that holds less than it should."""
    try:
        with open(path, "rb") as file:
            is_pointer = file.read(len(_LFS)) == _LFS
    except OSError:
        is_pointer = False
    if is_pointer:
        return "it is a pointer of Git LFS; 'git lfs pull' fetches the file itself"
    return otherwise


def _zipped(head: bytes) -> str:
    """The suggestion for a zip file; its first bytes name a file in it."""
    if b"__MODEL_PROTO" in head:
        return "is a zip, as tf2onnx --large_model writes; unpack it, and give __MODEL_PROTO.onnx"
    if b".pkl" in head:
        return f"is a zip, and no ONNX model: {_PYTORCH}"
    return "is a zip and no model itself; unpack it, and give the .onnx that is in it"


def refuse_other_contents(source: Path | bytes) -> None:
    """Raises InvalidModelError if a regular file, or bytes of an ONNX model, begin like another
    known format: an IR under the name of an ONNX model, or the other way round."""
    if isinstance(source, bytes):
        name, format, head = "the model", "onnx", source[:64]
    else:
        name, format = str(source), {".onnx": "onnx", ".xml": "ir"}.get(source.suffix.lower(), "")
        try:
            with source.open("rb") as file:
                head = file.read(64)
        except OSError:  # the reader reports it
            return
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(_LFS):
        raise InvalidModelError(
            f"{name}: is a pointer of Git LFS and not the model itself; 'git lfs pull' fetches the "
            "model"
        )
    if start.startswith(b"PK\x03\x04"):
        raise InvalidModelError(f"{name}: {_zipped(head)}")
    if start.startswith(b"\x1f\x8b"):
        raise InvalidModelError(f"{name}: is packed by gzip; unpack it first")
    if start[:9].lower().startswith((b"<!doctype", b"<html")):
        raise InvalidModelError(
            f"{name}: is HTML, a page of the web, and no model; check the download"
        )
    if format == "onnx" and (start.startswith((b"<?xml", b"<net"))):
        raise InvalidModelError(
            f"{name}: is an OpenVINO IR in XML, not an ONNX model; "
            + (
                "give it a name that ends in .xml, with its .bin beside it"
                if name != "the model"
                else "give its path, or a pair of the bytes of .xml and .bin"
            )
        )
    if format == "ir" and head.startswith(b"\x08"):
        raise InvalidModelError(
            f"{name}: is no XML; it may be an ONNX model, whose name must end in .onnx"
        )
