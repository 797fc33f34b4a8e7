import re
from pathlib import Path


def test_the_code_of_the_page_runs():
    page = (Path(__file__).parents[2] / "docs" / "envs.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 6
    exec(compile("\n".join(blocks), "docs/envs.md", "exec"), {})
