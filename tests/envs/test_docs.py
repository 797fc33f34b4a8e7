import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(("page", "least"), [("envs.md", 6), ("highway.md", 3)])
def test_the_code_of_the_page_runs(page: str, least: int):
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), flags=re.DOTALL | re.MULTILINE)
    ours = [block for block in blocks if "highway_env.vehicle" not in block]
    assert len(ours) >= least
    exec(compile("\n".join(ours), f"docs/{page}", "exec"), {})
