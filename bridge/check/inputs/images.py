"""Pictures as inputs of a model, read with Pillow where it is installed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bridge.errors import UsageError
from bridge.files import opened
from bridge.neutral.graph import Value
from bridge.neutral.types import innermost

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")

_MODES = {1: "L", 3: "RGB", 4: "RGBA"}
"""Pillow's modes by the number of channels."""


def picture(path: Path, value: Value) -> np.ndarray:
    """The numbers of a picture, from 0 to 255, in the type and the layout of an input, which tells
    the channels by an axis of size 1, 3 or 4. A picture gets the height and width that are known.
    UsageError if the input takes no picture, or the file is none."""
    shape, element = innermost(value.type).shape, innermost(value.type).element
    axes = None if shape is None else shape[1:] if len(shape) == 4 else shape
    if axes is None or len(axes) != 3 or not {axes[0], axes[2]} & _MODES.keys():
        raise UsageError(f'{path}: "{value.name}" of {value.type} takes no picture; give an .npz')
    first = axes[0] in _MODES
    channels, height, width = axes if first else (axes[2], *axes[:2])
    try:
        from PIL import Image

        with opened(path) as file, Image.open(file) as image:
            drawn = image.convert(_MODES[channels])  # type: ignore[index]
    except ImportError:
        raise UsageError(f"{path}: a picture is read by Pillow: pip install pillow") from None
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise UsageError(f"{path}: is no picture that can be read: {error}") from None
    known = (width, height) if isinstance(width, int) and isinstance(height, int) else drawn.size
    array = np.asarray(drawn if drawn.size == known else drawn.resize(known))
    array = array.reshape(*array.shape[:2], -1)
    array = array.transpose(2, 0, 1) if first else array
    array = array[None] if len(shape or ()) == 4 else array
    return array.astype(np.uint8 if element is None else element.dtype)
