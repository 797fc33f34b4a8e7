"""Put the report of the committed results beside the page that embeds it, docs/paper.md."""

import shutil
from pathlib import Path
from typing import Any

REPORT = Path(__file__).parents[2] / "results" / "report.html"


def on_post_build(config: Any, **_: Any) -> None:
    """Copy the page into the built site."""
    if REPORT.exists():  # a source distribution leaves it out
        shutil.copy(REPORT, Path(config["site_dir"], "assets", "report.html"))
