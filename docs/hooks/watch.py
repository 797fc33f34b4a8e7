"""Write the page that docs/watch.md embeds, from its recording: it always is what the present version shows."""

from pathlib import Path
from typing import Any

RECORDING = Path(__file__).parents[1] / "assets" / "watch.zip"


def on_post_build(config: Any, **_: Any) -> None:
    """Put the page beside the recording in the built site."""
    from sentinel_rl.viewer import load_recording, write_page

    if RECORDING.exists():  # a source distribution leaves it out
        write_page(load_recording(RECORDING), Path(config["site_dir"], "assets", "watch.html"))
