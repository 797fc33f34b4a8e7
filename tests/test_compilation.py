"""The folder of compiled programs: where it is, who decides, and what is removed."""

import os
import subprocess
import sys

import jax
import pytest

from sentinel_rl import compilation
from sentinel_rl.cli import main

OPTION = "jax_compilation_cache_dir"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A cache of one's own, and JAX as it is without any configuration."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    before = jax.config.values[OPTION], jax.config.values["jax_persistent_cache_min_compile_time_secs"]
    jax.config.update(OPTION, None)
    yield tmp_path
    jax.config.update(OPTION, before[0])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", before[1])


def test_it_is_on_by_default_in_a_folder_of_the_user_s(home):
    folder = compilation.use_compilation_cache()
    assert folder == compilation.cache_folder()
    assert folder.parent == home / "sentinel-rl"
    assert folder.is_dir()
    assert jax.config.values[OPTION] == str(folder)


def test_the_user_s_own_folder_is_respected(home):
    jax.config.update(OPTION, str(home / "mine"))
    assert compilation.use_compilation_cache() == home / "mine"
    assert not compilation.cache_folder().exists()


@pytest.mark.parametrize("word", ["off", "0", "False"])
def test_it_can_be_switched_off(home, monkeypatch, word):
    monkeypatch.setenv(compilation.SWITCH, word)
    assert compilation.use_compilation_cache() is None
    assert jax.config.values[OPTION] is None


def test_a_home_that_cannot_be_written_to_is_no_failure(home, monkeypatch):
    (home / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "file"))
    assert compilation.use_compilation_cache() is None


def test_the_command_shows_and_clears_it(home, capsys):
    compilation.cache_folder().mkdir(parents=True)
    (compilation.cache_folder() / "program").write_bytes(bytes(2_000_000))
    for arguments, words in [(["cache"], "1 files, 2.0 MB"), (["cache", "clear"], "removed 2.0 MB")]:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 0
        assert words in capsys.readouterr().out
    assert not compilation.cache_folder().exists()
    assert compilation.clear_cache() == 0


def test_a_second_process_finds_what_the_first_compiled(tmp_path):
    program = (
        "import jax, sentinel_rl.compilation as c\n"
        "c._WORTH_KEEPING = 0\n"
        "c.use_compilation_cache()\n"
        "jax.config.update('jax_persistent_cache_min_entry_size_bytes', -1)\n"
        "jax.monitoring.register_event_listener(lambda name, **_: print(name))\n"
        "jax.jit(lambda x: x * 3 + 1)(2.0)\n"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    told = [
        subprocess.run(
            [sys.executable, "-c", program],
            env=clean | {"XDG_CACHE_HOME": str(tmp_path)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for _ in range(2)
    ]
    assert ["cache_hits" in text for text in told] == [False, True]
