"""One self-contained page for a recording: no server, no network, nothing from elsewhere.

The page executes nothing of a recording: its data is JSON in a block that is not a script, every ``<``, ``>`` and ``&``
of it escaped; the page's own scripts set text as text; and its content security policy allows exactly these scripts, by
their hashes, and images that are part of the page.
"""

import base64
import dataclasses
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from sentinel_rl._version import __version__
from sentinel_rl.explanation import WORDS
from sentinel_rl.storage.atomic import make_folder, write_file
from sentinel_rl.viewer.recording import Recording

SCRIPTS = (
    *("risk.js", "dom.js", "recording.js", "reasons.js", "world.js", "charts.js"),
    *("timeline.js", "decision.js", "whatif.js", "outcome.js", "page.js"),
)
# A page that is served has one more, before the last.
LIVE_SCRIPTS = (*SCRIPTS[:-1], "live.js", SCRIPTS[-1])
# Where the laws are larger than this, they are rounded to 16 bits.
LARGEST_LAWS = 4_000_000
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def write_page(recording: Recording, path: str | Path) -> Path:
    """Write the page of a recording; a bare name gets ``.html``.

    Raises:
        StorageError: when it could not be written.
    """
    target = Path(path) if Path(path).suffix else Path(f"{path}.html")
    make_folder(target.parent)
    return write_file(target, page_text(recording))


def page_text(recording: Recording) -> str:
    """The page of a recording, as one HTML document."""
    about = recording.about
    return document(f"Watch it decide: {about.agent} in {about.env}", _data(recording), SCRIPTS)


def document(title: str, data: dict[str, Any], names: Sequence[str], connect: str | None = None) -> str:
    """The page with its data and scripts, as one HTML document.

    Args:
        title: of the page.
        data: what its scripts read.
        names: of the scripts, in their order.
        connect: the addresses that it may connect to, none when None.
    """
    style, scripts = _part("page.css"), [_part(name) for name in names]
    return Template(_part("page.html")).substitute(
        policy=security_policy(style, scripts, connect),
        title=escape(title),
        style=style,
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
        data=embedded(data),
    )


def _data(recording: Recording) -> dict[str, Any]:
    """What the page reads."""
    about = recording.about
    laws = recording.arrays.get("probs")
    rounded = laws is not None and laws.nbytes > LARGEST_LAWS
    note = " Its laws are rounded to 16 bits, to keep the page small." if rounded else ""
    return {
        "about": dataclasses.asdict(about),
        "words": dict(WORDS),
        "made": f"Recorded with sentinel-rl {__version__}.{note}",
        "arrays": {
            name: packed(array.astype(np.float16) if name == "probs" and rounded else array)
            for name, array in recording.arrays.items()
        },
    }


def packed(array: np.ndarray) -> dict[str, Any]:
    """An array as the page reads it: type, shape, and its bytes in base 64."""
    kind = "uint8" if array.dtype == np.bool_ else array.dtype.name
    content = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
    return {"type": kind, "shape": list(array.shape), "data": base64.b64encode(content).decode()}


def security_policy(style: str, scripts: Sequence[str], connect: str | None = None) -> str:
    """The content security policy of a page: its own style and scripts, by their hashes, and images that it holds."""
    policy = {
        "default-src": "'none'",
        "script-src": " ".join(map(_hash, scripts)),
        "style-src": _hash(style),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        **({} if connect is None else {"connect-src": connect}),
    }
    return "; ".join(f"{name} {value}" for name, value in policy.items())


def embedded(data: Any) -> str:
    """JSON that ends no script block and opens no comment, whatever its texts hold."""
    text = json.dumps(data, allow_nan=False)
    for letter, written in _ESCAPES.items():
        text = text.replace(letter, written)
    return text


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _part(name: str) -> str:
    return (files("sentinel_rl.viewer") / name).read_text(encoding="utf-8")
