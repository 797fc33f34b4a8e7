"""What holds for every test: checked shapes, no silent broadcasting, repeatable examples, both precisions."""

import gc
import os
from pathlib import Path

# All processes of the tests, and those they start, share what they compile. JAX reads this when it is imported.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "compiled"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")
# Compiling is the cost of a test: XLA optimises little, except where `optimised` says otherwise.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "true")
# For the processes that tests start, see below. Workers of a parallel run inherit it, and JAX would read it here.
os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "")
    .replace("--xla_cpu_use_fusion_emitters=false", "")
    .replace("--xla_cpu_parallel_codegen_split_count=1", "")
    .strip()
)

import jax
import jaxtyping
import matplotlib as mpl
import pytest
from hypothesis import settings
from jax._src import compiler

from tests import attacks as attack_counts
from tests import typecheck

# The hook works on what is imported after it, so it stands before everything else.
jaxtyping.install_import_hook("sentinel_rl", f"{typecheck.__name__}.check")
jax.config.update("jax_numpy_rank_promotion", "raise")
mpl.use("Agg")
# What is imported stays: the collector would go through it again and again. It starts once the tests are collected.
gc.disable()
# One device, whichever test comes first: code that asks for all cores once JAX runs gets one, and programs are shared.
jax.devices()
# XLA's fusion emitters take half of the time that compiling takes. JAX has run already: processes of the tests read it.
# They compile as `_quick` says, or their numbers would have other last bits.
os.environ["XLA_FLAGS"] += " --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"

# "ci" repeats itself exactly; `--hypothesis-profile=explore` looks further, with fresh examples each time.
settings.register_profile("ci", derandomize=True, deadline=None, max_examples=60)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile("ci")


def pytest_addoption(parser):
    parser.addoption("--attacks", action="store_true", help="print how many attacks the tests made, by name")


def pytest_collection_modifyitems(items):
    """Put modules that compile alike next to each other; note the attack that a test makes for its report."""
    # Between modules that compile differently all that was compiled is forgotten, which takes seconds. What takes
    # longest comes first, and the doctests stay last: the processes of a parallel run then end together.
    items.sort(
        key=lambda item: _compiles_as(item.path, item.config.rootpath, item.getparent(pytest.Module)), reverse=True
    )
    for item in items:
        if marker := item.get_closest_marker("attack"):
            (name,) = marker.args
            assert name in attack_counts.ATTACKS, f"{item.nodeid}: no attack of tests/attacks.py is called {name!r}"
            item.user_properties.append(("attack", name))


def pytest_collection_finish():
    """Let the garbage collector look at what tests make, and not at modules, tests and rewritten code."""
    gc.freeze()
    gc.set_threshold(20_000)  # tracing a program makes many objects that live until it is compiled
    gc.enable()


def pytest_terminal_summary(terminalreporter):
    if terminalreporter.config.getoption("--attacks"):
        passed, failed = (
            attack_counts.count(
                report for report in terminalreporter.stats.get(outcome, []) if getattr(report, "when", None) == "call"
            )
            for outcome in ("passed", "failed")
        )
        terminalreporter.section("attacks")
        for line in attack_counts.table(passed, failed):
            terminalreporter.write_line(line)


@pytest.fixture
def attacks(request):
    """Say how many attacks a test has made."""
    return lambda number: request.node.user_properties.append(("attacks", number))


@pytest.fixture
def x64():
    """Run a test in float64."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(params=["float32", "float64"])
def precision(request):
    """Run a test in both precisions, and name the one."""
    with jax.enable_x64(request.param == "float64"):
        yield request.param


@pytest.fixture
def untyped():
    """Run a test as a user without a type checker does, so that ill-typed arguments reach the library's own checks."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


# Where numbers are compared with others to many digits, they are those that users get.
OPTIMISED = ("tests/envs/highway", "tests/returns", "tests/risk")
# Where two programs give the same bits, they do so as users compile them. What one module has computed is compared with
# by others of its folder: all of them compile alike.
SAME_BITS = ("tests/api", "tests/training", "tests/viewer")
_usual_options = compiler.get_compile_options
# A program in one piece: cut into pieces that are compiled beside each other, small programs take longer.
_quick = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}


def _quick_options(*args, env_options_overrides=None, **kwargs):
    return _usual_options(*args, env_options_overrides=_quick | (env_options_overrides or {}), **kwargs)


def _compiles_as(path: Path, root: Path, module: pytest.Module | None) -> tuple[bool, bool]:
    """How a module compiles: whether as users do, and whether XLA optimises."""
    place = path.relative_to(root).as_posix()
    exact = place.startswith((*OPTIMISED, *SAME_BITS)) and not getattr(module and module.obj, "COMPILE_QUICKLY", False)
    return exact, exact and place.startswith(OPTIMISED)


def _compile_with(options, optimise: bool) -> None:
    """Compile in this way from here on: what was compiled in another way is forgotten, or it would be found again."""
    if (compiler.get_compile_options, jax.config.values["jax_disable_most_optimizations"]) != (options, not optimise):
        jax.clear_caches()
    jax.config.update("jax_disable_most_optimizations", not optimise)
    compiler.get_compile_options = options


@pytest.fixture(autouse=True, scope="module")
def optimised(request):
    """Let XLA optimise as it does for users, in the tests of numbers and where much is computed.

    A module that compiles much and computes next to nothing says ``COMPILE_QUICKLY = True``.
    """
    exact, optimise = _compiles_as(request.path, request.config.rootpath, request.node)
    _compile_with(_usual_options if exact else _quick_options, optimise)
