"""The attacks of docs/reliability.md, and how many of each the tests make: `make test-faults` prints the table.

A test that makes attacks is marked ``@pytest.mark.attack("forged-policy")``. It counts as one, unless it takes the
fixture `attacks` and says how many it has made.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

# By name, in the order of docs/reliability.md.
ATTACKS: dict[str, str] = {
    "report-script": "scripts and markup in what the report and the viewer show",
    "forged-policy": "forged policy files with a right checksum",
    "kill-same-files": "kills, after which every file of the run is compared",
    "kill-in-save": "kills between the writing and the renaming of a file",
    "flip-monitor": "flipped bits in monitor files",
    "flip-finished": "flipped bits in finished.json",
    "forged-record": "forged records of a study with a right checksum",
    "forged-run": "forged folders of runs, curves, monitors, logs and configurations",
    "forged-study": "forged study files of a sweep",
    "forged-scene": "forged scenes and calibrations",
    "zip-bomb": "members of a policy file that unpack to very much",
    "command-line": "values of every option of every command",
    "empty-text": "empty texts where a file or folder is wanted",
    "many-seeds": "absurd numbers of seeds",
    "class-options": "values of every option of every agent and of the classes",
    "bad-environment": "environments that misbehave",
    "bad-report": "JSON, CSV, Markdown and SVG files that are not the experiments'",
    "readme": "README files that try to be filled with something else",
    "half-precision": "samples in float16 and bfloat16",
    "huge-atoms": "atoms near the largest number of a precision",
    "tiny-atoms": "risks of tiny values",
    "batch-sizes": "batch sizes of predict",
    "long": "long and large: many seeds, environments, calls",
    "clock": "a clock that is set back and forth",
    "ray": "parts of a Ray cluster that are killed or have no memory",
    "round-2": "attacks of the second round",
}


def count(reports: Iterable[Any]) -> Counter[str]:
    """How many attacks of each name the tests of these reports made."""
    made: Counter[str] = Counter()
    for report in reports:
        told = dict(report.user_properties)
        if "attack" in told:
            made[told["attack"]] += told.get("attacks", 1)
    return made


def table(passed: Counter[str], failed: Counter[str]) -> list[str]:
    """The lines of the table."""
    lines = [f"{name:<16} {passed[name]:>6} held {failed[name]:>4} broke   {ATTACKS[name]}" for name in ATTACKS]
    return [*lines, f"{'all':<16} {passed.total():>6} held {failed.total():>4} broke"]
