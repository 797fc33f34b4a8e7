"""Pages that describe the layout of the code agree with it."""

import re
import tomllib

import pytest

from tests.docs.pages import PAGES, ROOT, name_of

SOURCE = ROOT / "src"
MOVED = re.findall(r"^\| `([\w.]+)` \| `([\w.]+)` \|$", (ROOT / "docs/migration.md").read_text(), flags=re.MULTILINE)


def exists(module: str) -> bool:
    path = SOURCE.joinpath(*module.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def test_the_layers_are_those_of_the_contract():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    page = (ROOT / "docs/architecture.md").read_text()
    rows = re.search(r"^\| layer \|.*\n\| --- .*\n((?:\|.*\n)+)", page, flags=re.MULTILINE)[1].splitlines()
    shown = [set(re.findall(r"`(\w+)`", row.split("|")[1])) for row in rows]
    assert shown == [set(layer.split(" | ")) for layer in layers]


def test_files_named_on_the_page_of_the_architecture_exist():
    page = (ROOT / "docs/architecture.md").read_text()
    named = re.findall(r"`((?:\w+/)*\w+\.py)`", page)
    assert named
    assert [name for name in named if not (SOURCE / "sentinel_rl" / name).exists()] == []


def test_moved_modules_are_where_the_page_says():
    assert len(MOVED) > 40
    assert [new for _, new in MOVED if not exists(new)] == []
    assert [old for old, _ in MOVED if exists(old)] == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "migration.md"], ids=name_of)
def test_modules_named_in_the_documentation_exist(page):
    """`sentinel_rl.x.y` is a module, or a name in one."""
    named = set(re.findall(r"\bsentinel_(?:rl|paper)(?:\.\w+)+", page.read_text()))
    assert [name for name in sorted(named) if not (exists(name) or exists(name.rpartition(".")[0]))] == []


def test_the_page_of_what_works_names_the_versions_and_tests_that_there_are():
    """Every row of *Works with*: the pinned version of every package, and files of tests."""
    pins = "\n".join(path.read_text() for path in (ROOT / "requirements").glob("*.txt"))
    rows = re.findall(
        r"^\| (.+?) \| ([\d., ]+) \| .+ \| (.+?) \|$", (ROOT / "docs/works-with.md").read_text(), re.MULTILINE
    )
    assert len(rows) >= 15
    for packages, versions, tests in rows:
        for package, version in zip(packages.split(", "), versions.split(", "), strict=True):
            assert re.search(rf"^{package}=={version}(?: |$)", pins, re.MULTILINE | re.IGNORECASE), package
        for test in re.findall(r"`([^`]+)`", tests):
            assert (ROOT / test).exists(), test


def test_the_page_of_what_works_lists_every_extra():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    names = {re.match(r"[\w-]+", line)[0].lower() for extra in set(extras) - {"all", "gpu"} for line in extras[extra]}
    first = re.findall(r"^\| ([^|]+) \|", (ROOT / "docs/works-with.md").read_text().lower(), re.MULTILINE)
    assert names <= {package for cell in first for package in cell.split(", ")}
