"""Every block of code in the README and the documentation works as printed; `pages` says how blocks are marked."""

import contextlib
import doctest
import io
import re
import shlex
import subprocess
import sys
import types

import gymnasium
import jax
import pytest

from sentinel_rl.agents import registry as agents
from sentinel_rl.cli import main
from sentinel_rl.envs import registry as envs
from sentinel_rl.risk import measure
from sentinel_rl.training import metrics
from tests.docs import commands
from tests.docs.pages import LANGUAGES, PAGES, ROOT, Block, blocks_of, commands_in, inline_commands, name_of

WIDEST = 88  # characters that fit into the column of the documentation on a desktop
CODE = {"python", "pycon"}
SHELL = {"console", "bash"}
WITH_CODE = [page for page in PAGES if any(block.language in CODE | SHELL for block in blocks_of(page))]
WITH_NEEDS = [page for page in WITH_CODE if any(block.needs for block in blocks_of(page))]
WITH_LONG = [page for page in WITH_CODE if any(block.long for block in blocks_of(page))]
every_page = pytest.mark.parametrize("page", PAGES, ids=name_of)


@pytest.fixture
def registries():
    """What a page registers is forgotten after it."""
    tables = [agents._KINDS, envs._ENTRIES, metrics._METRICS, measure.MEASURES]
    before = [dict(table) for table in tables]
    yield
    for name in set(envs._ENTRIES) - set(before[1]):  # what other packages told Gymnasium when imported stays
        gymnasium.registry.pop(name, None)
    for table, content in zip(tables, before, strict=True):
        table.clear()
        table.update(content)


@pytest.fixture
def namespace(monkeypatch, tmp_path, registries):
    """The module that the blocks of one page share; they run in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    return vars(module)


@pytest.fixture
def fast_programs(optimised):
    """Let XLA optimise as it does for users, where programs run for minutes."""
    before = jax.config.values["jax_disable_most_optimizations"]
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_the_blocks_of_a_page_run(page, namespace):
    run_page([(block, block.shortened()) for block in blocks_of(page)], namespace)


@pytest.mark.clients
@pytest.mark.parametrize("page", WITH_NEEDS, ids=name_of)
def test_blocks_that_need_a_package_run(page, namespace):
    run_page([(block, block if block.needs else block.shortened()) for block in blocks_of(page)], namespace)


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_LONG, ids=name_of)
def test_long_blocks_run_as_they_are_printed(page, namespace, fast_programs):
    run_page([(block, block if block.runs else None) for block in blocks_of(page)], namespace)


@every_page
def test_blocks_that_are_not_run_can_be_read(page):
    for block in blocks_of(page):
        if block.language == "python":
            compile(block.code, f"{block.page}:{block.line}", "exec")
        elif block.language == "pycon":
            assert doctest.DocTestParser().get_examples(block.code, f"{block.page}:{block.line}")


@every_page
def test_commands_exist_with_their_options(page):
    shown = [
        (line, command) for block in blocks_of(page) if block.language in SHELL for line, command in commands_in(block)
    ]
    assert [fault for line, command in shown if (fault := fault_of(command, page, line))] == []


@every_page
def test_commands_in_the_text_exist_with_their_options(page):
    shown = inline_commands(page)
    assert [fault for command in shown if (fault := fault_of(command, page, complete=False))] == []


@every_page
def test_blocks_have_a_known_language_and_fit_their_column(page):
    blocks = blocks_of(page)
    assert page.read_text().count("```") == 2 * len(blocks)
    assert [(block.line, block.language) for block in blocks if block.language not in LANGUAGES] == []
    wide = [
        (block.line + offset, len(line))
        for block in blocks
        for offset, line in enumerate(block.code.splitlines())
        if len(line) > WIDEST
    ]
    assert wide == []


def fault_of(command, page, line=None, complete=True):
    """What is wrong with a command, if anything."""
    own = [block.code.split()[1] for block in blocks_of(page) if re.match(r"# \w+\.py\b", block.code)]
    try:
        commands.check(command, complete=complete, own=own)
    except commands.WrongCommandError as wrong:
        return f"{name_of(page)}:{line or ''} {command}: {wrong}"
    return None


def run_page(blocks: list[tuple[Block, Block | None]], namespace: dict) -> None:
    """Run the blocks of a page as they are to be run now, and compare what those print that are run as printed."""
    said = None
    for block, short in blocks:
        if block.marker.startswith("output"):
            assert said is None or prints(block, said), f"{block.page}:{block.line} is not what is printed:\n{said}"
            said = None
        elif short is not None:
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                run(short, namespace)
            said = printed.getvalue() if short.code == block.code and block.language == "python" else None
        elif block.language == "python":
            said = None


NUMBER = re.compile(r"[-+]?\d+(\.\d+)?")


def prints(block: Block, said: str) -> bool:
    """Whether a block of text is what was printed."""
    shown = block.code
    if "numbers vary" in block.marker:
        shown, said = (NUMBER.sub("#", text) for text in (shown, said))
    return doctest.OutputChecker().check_output(shown, said, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)


def run(block: Block, namespace: dict) -> None:
    """Run one block in the namespace of its page."""
    if block.language == "python":
        # Empty lines in front, so that a traceback names the line of the page.
        exec(compile("\n" * (block.line - 1) + block.code, ROOT / block.page, "exec"), namespace)
    elif block.language == "pycon":
        run_session(block, namespace)
    elif block.language in SHELL:
        for line, command in commands_in(block):
            run_command(shlex.split(command, comments=True), f"{block.page}:{line}")


def run_session(block: Block, namespace: dict) -> None:
    """Run an interactive session and compare what it prints."""
    test = doctest.DocTestParser().get_doctest(block.code, namespace, block.page, block.page, block.line - 1)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    failed, _ = runner.run(test, out=said.append, clear_globs=False)
    assert not failed, "".join(said)
    namespace.update(test.globs)


def run_command(words: list[str], place: str) -> None:
    """Run a command of ours; make and the programs of others are only looked at."""
    if words[0] == "sentinel":
        with pytest.raises(SystemExit) as ended:
            main(words[1:])
        assert ended.value.code == 0, f"{place} ended with {ended.value.code}"
    elif words[0] == "python":
        subprocess.run([sys.executable, *words[1:]], cwd=ROOT, check=True, capture_output=True)


def block(code: str, language: str = "python", marker: str = "") -> Block:
    return Block("page.md", 1, language, code, marker)


def test_a_marker_makes_a_block_short():
    long = block("learn(100_000, seeds=20)\n", marker="long: 100_000 = 300; seeds=20 = seeds=2")
    assert long.shortened().code == "learn(300, seeds=2)\n"
    assert block("x = 1\n", marker="long").shortened() is None
    assert block("x = 1\n", marker="not run: a reason").shortened() is None
    assert block("x = 1\n").shortened().code == "x = 1\n"


def test_a_marker_that_replaces_nothing_is_refused():
    with pytest.raises(ValueError, match="not in the block"):
        block("learn(1_000)\n", marker="long: 100_000 = 300").shortened()


def test_a_wrong_output_is_found():
    printing, output = block("print(1.5, 'a')\n"), block("1.5 a\n", "text", "output")
    run_page([(printing, printing), (output, output)], {})
    other = output._replace(code="2.5 a\n")
    with pytest.raises(AssertionError, match="is not what is printed"):
        run_page([(printing, printing), (other, other)], {})
    varying = other._replace(marker="output, numbers vary")
    run_page([(printing, printing), (varying, varying)], {})
    run_page([(printing, block("print(2, 'b')\n")), (output, output)], {})  # a shortened one prints something else


def test_a_wrong_answer_in_a_session_is_found():
    with pytest.raises(AssertionError, match="Expected"):
        run_session(block(">>> 1 + 1\n3\n", "pycon"), {})


@pytest.mark.parametrize(
    ("command", "complete", "fault"),
    [
        ("sentinel trian --env CartPole-v1", True, "no command sentinel trian"),
        ("sentinel train --env CartPole-v1 --out runs/x --sedes 5", True, "--sedes"),
        ("sentinel train --env CartPole-v1", True, "--out"),
        ("sentinel train --sedes 5", False, "--sedes"),
        ("make coffee", True, "no target coffee"),
        ("python benchmarks/coffee.py", True, "does not exist"),
        ("python benchmarks/risk.py --sugar", True, "no option --sugar"),
        ("coffee --with milk", True, "no command that the documentation knows"),
    ],
)
def test_a_wrong_command_is_found(command, complete, fault):
    with pytest.raises(commands.WrongCommandError, match=fault):
        commands.check(command, complete=complete)
