"""The extras of the package: `all` has all of them, and every one that an error names exists."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def test_all_has_all_of_them_but_what_the_machine_decides():
    (everything,) = EXTRAS["all"]
    assert set(re.findall(r"\w+", everything.partition("[")[2])) == set(EXTRAS) - {"all", "gpu"}


def test_extras_that_are_named_exist():
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    named = {extra for path in files for extra in re.findall(r"sentinel-rl\[(\w+)\]", path.read_text())}
    assert {"gpu", "highway", "ray", "tensorboard"} <= named <= set(EXTRAS)


def test_no_error_names_a_bare_package():
    """Whoever misses an extra is told the line that installs it with the versions that fit."""
    told = [
        (path.name, line)
        for path in (ROOT / "src").rglob("*.py")
        for line in re.findall(r"pip install [^\n]*", path.read_text())
        # gymnax is no extra: it asks for an older Gymnasium than ours.
        if not re.match(r"pip install (['\"\\]*sentinel-rl\[|gymnax)", line)
    ]
    assert told == []
