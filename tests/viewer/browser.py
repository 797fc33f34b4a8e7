"""A headless browser for the tests of pages, installed from the tools of the report's tests."""

import json
import shutil
import subprocess
from pathlib import Path

from tests import node

HERE = Path(__file__).parent
TOOLS = HERE.parent / "paper" / "browser"


def installed(folder: Path) -> Path:
    """Install the browser into a folder; without it a test fails in CI, and is skipped elsewhere."""
    shutil.copytree(TOOLS, folder, dirs_exist_ok=True)
    for script in HERE.glob("*.mjs"):
        shutil.copy(script, folder)
    install = [node.tool("npm"), "install", "--no-audit", "--no-fund"]
    done = subprocess.run(install, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        node.missing(f"the browser cannot be installed from here ({done.stderr.strip()})")
    return folder


def go(tools: Path, script: str, page: object, plan: dict) -> dict:
    """Let the browser go through a page by a plan, and return what it saw."""
    (tools / "plan.json").write_text(json.dumps(plan))
    command = [node.tool("node"), script, str(page), "plan.json"]
    found = subprocess.run(command, cwd=tools, capture_output=True, text=True, timeout=180, check=False)
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)
