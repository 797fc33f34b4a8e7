"""Write the API reference of whole packages, and refuse a site in which a public name of the library is missing.

A line ``::: PACKAGE.*`` becomes one entry per public module of the package.
"""

import ast
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[2] / "src"
LIBRARY = "sentinel_rl"
# `sentinel COMMAND --help` is the reference of the command line.
LEFT_OUT = ("sentinel_rl.cli",)
WHOLE_PACKAGE = re.compile(r"^::: ([\w.]+)\.\*$", re.MULTILINE)
ENTRY = """\
::: {module}
    options:
      heading_level: 2
      show_root_full_path: true
"""


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Expand the packages of one page."""
    return expand(markdown)


def on_post_build(config: Any, **_: Any) -> None:
    """Compare the names of the built site with those of the library."""
    from mkdocs.exceptions import PluginError

    _, _, _, _, content = Path(config["site_dir"], "objects.inv").read_bytes().split(b"\n", 4)
    shown = {line.split()[0] for line in zlib.decompress(content).decode().splitlines()}
    if missing := [name for module in library_modules() for name in public_names(module) if name not in shown]:
        raise PluginError(f"the API reference lacks {', '.join(missing)}: add their module to a page in docs/api")


def expand(markdown: str) -> str:
    """Replace ``::: PACKAGE.*`` by an entry for each of the package's modules."""
    return WHOLE_PACKAGE.sub(
        lambda found: "\n".join(ENTRY.format(module=module) for module in package_modules(found[1])), markdown
    )


def package_modules(package: str) -> list[str]:
    """Return the modules of a package that do not begin with an underscore, without those of its sub-packages."""
    folder = SOURCE.joinpath(*package.split("."))
    return [f"{package}.{file.stem}" for file in sorted(folder.glob("*.py")) if not file.stem.startswith("_")]


def library_modules() -> list[str]:
    """Return every public module of the library."""
    folders = [SOURCE / LIBRARY, *sorted(file.parent for file in (SOURCE / LIBRARY).rglob("*/__init__.py"))]
    packages = [".".join(folder.relative_to(SOURCE).parts) for folder in folders]
    return [module for package in packages if package not in LEFT_OUT for module in package_modules(package)]


def public_names(module: str) -> Iterator[str]:
    """Yield the names that a module defines itself, as ``module.name``."""
    body = ast.parse(SOURCE.joinpath(*module.split(".")).with_suffix(".py").read_text()).body
    for statement in body:
        for name in _defined(statement):
            if not name.startswith("_"):
                yield f"{module}.{name}"


def _defined(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.ClassDef() | ast.FunctionDef():
            return [statement.name]
        case ast.Assign():
            return [node.id for target in statement.targets for node in ast.walk(target) if isinstance(node, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []
