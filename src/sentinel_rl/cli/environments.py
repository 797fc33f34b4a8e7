"""Environments as the command line names them: a name, settings, and wrappers that are code of the user's own."""

import dataclasses
import importlib
import importlib.util
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium

from sentinel_rl.cli.options import parse_value
from sentinel_rl.envs.handle import EnvHandle, resolve_env
from sentinel_rl.envs.originals import ORIGINALS, make_original
from sentinel_rl.envs.registry import make_env
from sentinel_rl.errors import UsageError


@dataclasses.dataclass(frozen=True)
class EnvRequest:
    """An environment as it was asked for.

    Args:
        name: of this library or of Gymnasium, also as ``package:name``.
        settings: it is made with.
        wrappers: ``module:name`` of Gymnasium wrappers, the innermost first.
    """

    name: str
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    wrappers: tuple[str, ...] = ()

    @property
    def imports(self) -> tuple[str, ...]:
        """The code that making it imports, beside that of installed environments."""
        return (*self.wrappers, self.name) if ":" in self.name else self.wrappers

    def make(self) -> EnvHandle:
        """Make the environment, wrapped; one with wrappers is stepped from Python, also where there is a JAX form.

        Raises:
            UsageError: for an unknown environment, an impossible setting, or a wrapper that cannot be found or applied.
        """
        if not self.wrappers:
            handle = resolve_env(make_env(self.name, **self.settings) if self.settings else self.name)
            return dataclasses.replace(handle, name=self.name, settings=dict(self.settings))
        wrap = [load_wrapper(text) for text in self.wrappers]
        env = self._gymnasium()
        for text, wrapper in zip(self.wrappers, wrap, strict=True):
            try:
                env = wrapper(env)
            except Exception as error:  # whatever code of the user's provokes
                raise UsageError(
                    f"--wrapper {text}: it cannot wrap {self.name}: {type(error).__name__}: {error}"
                ) from error
            if not isinstance(env, gymnasium.Env):
                raise UsageError(
                    f"--wrapper {text}: it gave {type(env).__name__}: give a class or function that takes a Gymnasium "
                    "environment and returns one"
                )
        handle = resolve_env(env)
        return dataclasses.replace(handle, name=self.name, settings=dict(self.settings), wrappers=self.wrappers)

    def _gymnasium(self) -> Any:
        try:
            if self.name in ORIGINALS:
                return make_original(self.name, **self.settings)
            return gymnasium.make(self.name, **self.settings)
        except (ValueError, TypeError, ImportError, gymnasium.error.Error) as error:
            raise UsageError(str(error) if self.name in str(error) else f"{self.name}: {error}") from error


def require_trust(request: EnvRequest, where: object, trust: bool) -> EnvRequest:
    """Return the request of a file unless making it imports code that nobody has vouched for.

    Raises:
        UsageError: with what the file names.
    """
    if request.imports and not trust:
        raise UsageError(
            f"{where} names code to import: {', '.join(request.imports)}. Look at it, and give --trust if you trust it"
        )
    return request


def load_wrapper(text: str) -> Callable[[Any], Any]:
    """Import what a wrapper is called: ``module:name``, or ``file.py:name``; modules are also looked for here.

    Raises:
        UsageError: when there is none.
    """
    place, _, name = text.rpartition(":")
    if not place or not name:
        raise UsageError(f"--wrapper {text}: write it as module:name, such as gymnasium.wrappers:FlattenObservation")
    try:
        module = _file_module(Path(place)) if place.endswith(".py") else _module(place)
    except UsageError:
        raise
    except Exception as error:  # whatever code of the user's provokes
        raise UsageError(f"--wrapper {text}: cannot import {place}: {type(error).__name__}: {error}") from error
    found = getattr(module, name, None)
    if not callable(found):
        raise UsageError(f"--wrapper {text}: {place} has no class or function {name}")
    wrapper: Callable[[Any], Any] = found
    return wrapper


def parse_env_settings(given: Sequence[str]) -> dict[str, Any]:
    """Read the settings of an environment: ``name=value`` each, or one JSON object.

    Example:
        >>> parse_env_settings(["lanes_count=4", "render_mode=rgb_array"])
        {'lanes_count': 4, 'render_mode': 'rgb_array'}
        >>> parse_env_settings(['{"config": {"lanes_count": 4}}'])
        {'config': {'lanes_count': 4}}
    """
    settings: dict[str, Any] = {}
    for text in given:
        if text.lstrip().startswith("{"):
            try:
                settings |= json.loads(text)
            except ValueError as error:
                raise UsageError(f"--env-kwargs {text}: this is no JSON object: {error}") from error
            continue
        name, sign, value = text.partition("=")
        if not sign or not name.strip().isidentifier():
            raise UsageError(f"--env-kwargs {text}: write it as name=value, or give one JSON object")
        settings[name.strip()] = parse_value(value.strip())
    return settings


def _module(name: str) -> Any:
    """Import a module, also from the folder in which the command runs."""
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    return importlib.import_module(name)


def _file_module(path: Path) -> Any:
    if not path.is_file():
        raise UsageError(f"--wrapper {path}: there is no such file")
    name = f"sentinel_wrapper_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"--wrapper {path}: this is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
