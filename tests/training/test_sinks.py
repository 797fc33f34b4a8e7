"""Scalars: means, exclusions, event files, and the words when their package is missing."""

import struct
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from sentinel_rl.agents.sentinel import SentinelAgent
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import UsageError
from sentinel_rl.returns import Support
from sentinel_rl.training.episodes import EpisodeLog
from sentinel_rl.training.sinks import Logger
from sentinel_rl.training.watch import Reports, event_folder


class Writer:
    """Stands in for tensorboardX."""

    def __init__(self, folder: str):
        self.folder, self.scalars, self.closed = folder, [], False

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        self.scalars.append((tag, value, step))

    def flush(self) -> None: ...

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch):
    writers: list[Writer] = []
    module = type(sys)("tensorboardX")
    module.SummaryWriter = lambda folder: writers.append(Writer(folder)) or writers[-1]
    monkeypatch.setitem(sys.modules, "tensorboardX", module)
    return writers


def test_values_are_replaced_and_means_are_means(capsys):
    logger = Logger(shown=True)
    logger.record("a", 1)
    logger.record("a", 2)
    for value in (1.0, 2.0, None, 6.0):
        logger.record_mean("b", value)
    assert logger.name_to_value == {"a": 2, "b": 3.0}
    logger.dump(7)
    assert capsys.readouterr().out == "step 7: a 2, b 3\n"
    assert logger.name_to_value == {}
    logger.record_mean("b", 5.0)
    assert logger.name_to_value == {"b": 5.0}, "a mean begins anew after a dump"


def test_what_is_excluded_or_no_number_is_not_shown(stand_in: list[Writer], capsys):
    logger = Logger("runs", shown=True)
    logger.record("x", 1.0, exclude="tensorboard")
    logger.record("y", 2.0, exclude=("stdout", "log"))
    logger.record("text", "hello")
    logger.record("nan", float("nan"))
    logger.dump(3)
    logger.close()
    (writer,) = stand_in
    assert capsys.readouterr().out == "step 3: x 1\n"
    assert (writer.folder, writer.scalars, writer.closed) == ("runs", [("y", 2.0, 3)], True)


def test_a_silent_logger_is_not_active(stand_in: list[Writer]):
    assert not Logger().active
    assert Logger(shown=True).active
    assert Logger("runs").active
    assert len(stand_in) == 1


def test_a_missing_package_is_named_with_its_install_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(UsageError, match=r"'runs' needs the package tensorboardX.*pip install tensorboardX"):
        Logger("runs")


def test_every_run_has_a_folder_of_its_own(tmp_path: Path):
    assert event_folder(None, 3) is None
    first = event_folder(tmp_path, 3)
    assert first == tmp_path / "Sentinel_seed3_1"
    first.mkdir()
    (tmp_path / "Sentinel_seed3_old").mkdir()
    assert event_folder(tmp_path, 3).name == "Sentinel_seed3_2"
    assert event_folder(tmp_path, 4).name == "Sentinel_seed4_1"


def test_event_files_hold_the_scalars(tmp_path: Path):
    events = pytest.importorskip("tensorboardX.proto.event_pb2")
    logger = Logger(tmp_path)
    logger.record("rollout/ep_rew_mean", 21.5)
    logger.dump(100)
    logger.close()
    (file,) = tmp_path.iterdir()
    content, found = file.read_bytes(), []
    while content:
        (size,) = struct.unpack("<Q", content[:8])
        event = events.Event.FromString(content[12 : 12 + size])
        found += [(value.tag, value.simple_value, event.step) for value in event.summary.value]
        content = content[16 + size :]
    assert found == [("rollout/ep_rew_mean", 21.5, 100)]


def test_a_watch_writes_the_known_tags(stand_in: list[Writer], tmp_path: Path):
    support = Support(0.0, 2.0, 5)
    agent = SentinelAgent(support, k=2, hidden=(4,), capacity=8)
    state = agent.init(EnvSpec("small", obs_size=2, num_actions=2), jax.random.key(0))
    log = EpisodeLog()
    log.extend(np.ones(3), np.array([False, True, False]), np.zeros(3, bool))
    metrics = {name: np.array([np.nan, 0.5]) for name in ("loss", "clip_low", "clip_high")}
    reports = Reports(tensorboard_log=tmp_path, monitor_dir=tmp_path / "episodes")
    with reports.watching(agent, "small", [3], [log]) as [watch]:
        watch(3, metrics, lambda: state)
    (writer,) = stand_in
    found = {tag: value for tag, value, _ in writer.scalars}
    assert writer.closed
    assert {step for *_, step in writer.scalars} == {3}
    assert (found["rollout/ep_rew_mean"], found["rollout/ep_len_mean"], found["train/loss"]) == (2.0, 2.0, 0.5)
    assert (found["risk/support_clip_low"], found["risk/support_clip_high"]) == (0.5, 0.5)
    mean = found["risk/composite"] + found["risk/aleatory"] + found["risk/epistemic"]
    assert 0 < found["risk/composite"] < mean < 2
    assert found["time/fps"] > 0
    assert (tmp_path / "episodes" / "monitor.csv").exists()
