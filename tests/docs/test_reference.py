"""The API reference has every public name of the library; `make docs` checks the built site again."""

import importlib.util
import re

import pytest

from sentinel_rl import api, envs, returns, risk, study
from tests.docs.pages import ROOT

_SPEC = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "hooks" / "reference.py")
reference = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(reference)

PAGES = sorted((ROOT / "docs" / "api").glob("*.md"))
ENTRY = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)
SHOWN = {name for page in PAGES for name in ENTRY.findall(reference.expand(page.read_text()))}


def is_shown(name: str) -> bool:
    """Whether an entry shows a name: its own, that of its module, or that of a package that exports it."""
    module, _, last = name.rpartition(".")
    package = module.rpartition(".")[0]
    return bool({name, module, f"{package}.{last}"} & SHOWN)


def test_modules_are_found_with_their_public_names():
    modules = reference.library_modules()
    assert {"sentinel_rl.belief", "sentinel_rl.risk.distortion", "sentinel_rl.envs.highway.env"} <= set(modules)
    assert not [module for module in modules if "._" in module or module.startswith("sentinel_rl.cli")]
    assert {"sentinel_rl.belief.Belief", "sentinel_rl.belief.ftrl_weights", "sentinel_rl.belief.Divergence"} <= set(
        reference.public_names("sentinel_rl.belief")
    )


@pytest.mark.parametrize("module", reference.library_modules())
def test_public_names_of_a_module_are_in_the_reference(module):
    assert [name for name in reference.public_names(module) if not is_shown(name)] == []


@pytest.mark.parametrize("package", [api, envs, returns, risk, study], ids=lambda package: package.__name__)
def test_names_that_a_package_exports_are_in_the_reference(package):
    exported = [getattr(package, name) for name in package.__all__]
    named = [f"{each.__module__}.{each.__qualname__}" for each in exported if hasattr(each, "__qualname__")]
    assert named
    assert [name for name in named if not is_shown(name)] == []


def test_every_page_of_the_reference_is_in_the_navigation_and_on_the_index():
    navigation, index = (ROOT / "mkdocs.yml").read_text(), (ROOT / "docs" / "api" / "index.md").read_text()
    others = [page.name for page in PAGES if page.name != "index.md"]
    assert [name for name in others if f"api/{name}" not in navigation or f"({name})" not in index] == []


def test_a_name_that_is_missing_would_be_noticed():
    assert not is_shown("sentinel_rl.risk.distortion.Missing")
    assert not is_shown("sentinel_rl.cli.app.build")
