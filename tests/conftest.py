"""What holds for every test: checked shapes, no silent broadcasting, repeatable examples, both precisions."""

import os
from pathlib import Path

# All processes of the tests, and those they start, share what they compile. JAX reads this when it is imported.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "compiled"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")
# Compiling is the cost of a test: XLA optimises little, except where `optimised` says otherwise.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "true")

import jax
import jaxtyping
import matplotlib as mpl
import pytest
from hypothesis import settings
from jax._src import compiler

from tests import typecheck

# The hook works on what is imported after it, so it stands before everything else.
jaxtyping.install_import_hook("sentinel_rl", f"{typecheck.__name__}.check")
jax.config.update("jax_numpy_rank_promotion", "raise")
mpl.use("Agg")
# One device, whichever test comes first: code that asks for all cores once JAX runs gets one, and programs are shared.
jax.devices()
# XLA's fusion emitters take half of the time that compiling takes. JAX has run already: processes of the tests read it.
os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), "--xla_cpu_use_fusion_emitters=false"]).strip()

# "ci" repeats itself exactly; `--hypothesis-profile=explore` looks further, with fresh examples each time.
settings.register_profile("ci", derandomize=True, deadline=None, max_examples=60)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile("ci")


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
# Where two programs give the same bits, they do so as users compile them.
SAME_BITS = (
    "tests/api/test_class.py",
    "tests/training/test_fused.py",
    "tests/training/test_host.py",
    "tests/training/test_trainer.py",
    "tests/viewer/test_live.py",
    "tests/viewer/test_record.py",
)
_usual_options = compiler.get_compile_options
_quick = {"xla_cpu_use_fusion_emitters": False}


def _quick_options(*args, env_options_overrides=None, **kwargs):
    return _usual_options(*args, env_options_overrides=_quick | (env_options_overrides or {}), **kwargs)


@pytest.fixture(autouse=True, scope="module")
def optimised(request):
    """Let XLA optimise as it does for users, in the tests of numbers and where much is computed."""
    place = request.path.relative_to(request.config.rootpath).as_posix()
    options = _usual_options if place.startswith((*OPTIMISED, *SAME_BITS)) else _quick_options
    if place.startswith(SAME_BITS):
        jax.clear_caches()  # what other tests have compiled is found again, whatever the options
    jax.config.update("jax_disable_most_optimizations", not place.startswith(OPTIMISED))
    compiler.get_compile_options = options


@pytest.fixture
def quick_compile(optimised, monkeypatch):
    """Let XLA optimise little, where a test compiles much and computes next to nothing."""
    before = jax.config.values["jax_disable_most_optimizations"]
    jax.config.update("jax_disable_most_optimizations", True)
    monkeypatch.setattr(compiler, "get_compile_options", _quick_options)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
