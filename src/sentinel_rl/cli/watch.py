"""``sentinel watch``: record what a trained agent does and why, and write a page that shows it."""

from pathlib import Path

from sentinel_rl.cli.runs import read_run
from sentinel_rl.console import results
from sentinel_rl.errors import UsageError
from sentinel_rl.viewer import Recording, record, save_recording, write_page


def run(
    path: Path,
    html: Path | None,
    episodes: int,
    seed: int,
    first: int,
    seed_index: int,
    on: str | None,
    save: Path | None,
    trust: bool = False,
) -> None:
    """Play episodes, write the page, and the recording where that is asked for; print where they are."""
    if html is not None and html.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"--html {html}: give a file that ends in .html")
    run = read_run(path, trust)
    agent = run.policy(seed_index, on)
    # By its name an environment is made again so that it can be drawn; its settings and wrappers have no name.
    named = on or (None if agent.handle.settings or agent.handle.wrappers else run.env)
    recording = record(agent, named or agent.handle, episodes, seed, first=first)
    console = results()
    console.print(_summary(recording), markup=False, soft_wrap=True)
    if save is not None:
        console.print(f"recording: {save_recording(recording, save)}", markup=False, soft_wrap=True)
    page = write_page(recording, html if html is not None else Path(f"{path.resolve().stem}.html"))
    console.print(f"page: {page}", markup=False, soft_wrap=True)


def _summary(recording: Recording) -> str:
    """How many episodes, and how they ended."""
    ended = int(recording.arrays["terminated"].sum())
    lengths = recording.arrays["lengths"]
    return (
        f"{recording.about.agent} in {recording.about.env}: {recording.episodes} episodes of {lengths.min()} to "
        f"{lengths.max()} decisions, {ended} of which ended before their time limit"
    )
