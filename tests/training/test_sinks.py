"""Sinks: means, exclusions, lines, files and event files, and the words when a package is missing."""

import json
import struct
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from sentinel_rl.errors import StorageError, UsageError
from sentinel_rl.training.sinks import (
    ConsoleSink,
    CSVSink,
    Histogram,
    Logger,
    RunStart,
    Sink,
    TensorBoardSink,
)
from sentinel_rl.training.trainer import train
from sentinel_rl.training.wandb_sink import WandbSink


class Writer:
    """Stands in for tensorboardX."""

    def __init__(self, folder: str):
        self.folder, self.scalars, self.closed = folder, [], False
        Path(folder).mkdir(parents=True)

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


class Own:
    """A sink of the user's own."""

    def __init__(self):
        self.written = []

    def write(self, step: int, values: Mapping[str, float], seed: int) -> None:
        self.written.append((step, dict(values), seed))

    def close(self) -> None: ...


def test_values_are_replaced_and_means_are_means(capsys):
    logger = Logger([ConsoleSink()])
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


def test_what_is_excluded_or_no_number_is_not_shown(stand_in: list[Writer], tmp_path: Path, capsys):
    own = Own()
    logger = Logger([ConsoleSink(), TensorBoardSink(tmp_path), CSVSink(tmp_path / "log.csv"), own], seed=4)
    logger.record("x", 1.0, exclude="tensorboard")
    logger.record("y", 2.0, exclude=("stdout", "csv"))
    logger.record("text", "hello")
    logger.record("nan", float("nan"))
    logger.dump(3)
    for sink in logger.sinks:
        sink.close()
    (writer,) = stand_in
    assert capsys.readouterr().out == "step 3: x 1\n"
    assert (writer.scalars, writer.closed) == ([("y", 2.0, 3)], True)
    assert (tmp_path / "log.csv").read_text() == "step,seed,name,value\n3,4,x,1.0\n"
    assert own.written == [(3, {"x": 1.0, "y": 2.0}, 4)], "it is not one of those that SB3 names"


def test_a_silent_logger_is_not_active(stand_in: list[Writer], tmp_path: Path):
    assert not Logger().active
    assert Logger([ConsoleSink()]).active
    assert Logger([TensorBoardSink(tmp_path)]).active
    assert stand_in == [], "no file before the first number"


def test_a_line_without_numbers_is_not_printed(capsys):
    ConsoleSink().write(3, {}, seed=0)
    assert capsys.readouterr().out == ""


def test_a_missing_package_is_named_with_its_install_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(UsageError, match=r"'runs' needs the package tensorboardX.*pip install 'sentinel-rl\[tensorb"):
        TensorBoardSink("runs")


def test_every_run_has_a_folder_of_its_own(stand_in: list[Writer], tmp_path: Path):
    (tmp_path / "Sentinel_seed3_old").mkdir()
    for _ in range(2):
        sink = TensorBoardSink(tmp_path, "Sentinel")
        for seed in (3, 4, 3):
            sink.write(10, {"a": 1.0}, seed)
        sink.close()
    names = [Path(writer.folder).name for writer in stand_in]
    assert names == ["Sentinel_seed3_1", "Sentinel_seed4_1", "Sentinel_seed3_2", "Sentinel_seed4_2"]
    assert [writer.scalars for writer in stand_in] == [[("a", 1.0, 10)] * 2, [("a", 1.0, 10)]] * 2
    assert all(writer.closed for writer in stand_in)


def test_event_files_hold_the_scalars(tmp_path: Path):
    events = pytest.importorskip("tensorboardX.proto.event_pb2")
    sink = TensorBoardSink(tmp_path)
    sink.write(100, {"rollout/ep_rew_mean": 21.5}, seed=0)
    sink.close()
    (file,) = tmp_path.glob("run_seed0_1/*")
    content, found = file.read_bytes(), []
    while content:
        (size,) = struct.unpack("<Q", content[:8])
        event = events.Event.FromString(content[12 : 12 + size])
        found += [(value.tag, value.simple_value, event.step) for value in event.summary.value]
        content = content[16 + size :]
    assert found == [("rollout/ep_rew_mean", 21.5, 100)]


def test_a_csv_file_has_a_line_per_scalar_and_is_continued(tmp_path: Path):
    path = tmp_path / "logs" / "run.csv"
    sink = CSVSink(path)
    assert not path.exists(), "no file before the first number"
    sink.write(10, {"a": 0.5, "b": 2.0}, seed=0)
    sink.write(10, {"a": 1.5}, seed=7)
    assert path.read_text().count("\n") == 4, "it can be read while training goes on"
    sink.close()
    sink.close()
    again = CSVSink(path)
    again.write(20, {"a, quoted": 3.0}, seed=0)
    again.close()
    assert path.read_text().splitlines() == [
        "step,seed,name,value",
        *("10,0,a,0.5", "10,0,b,2.0", "10,7,a,1.5", '20,0,"a, quoted",3.0'),
    ]


def test_a_csv_file_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("here")
    with pytest.raises(StorageError, match=r"file/run\.csv|folder"):
        CSVSink(tmp_path / "file" / "run.csv").write(1, {"a": 1.0}, seed=0)


def test_two_methods_make_a_sink():
    assert isinstance(Own(), Sink)
    assert all(isinstance(sink, Sink) for sink in (ConsoleSink(), CSVSink("x.csv")))
    assert not isinstance(object(), Sink)


def events_of(folder: Path):
    """The events of all files of a folder, in the order of their files."""
    events = pytest.importorskip("tensorboardX.proto.event_pb2")
    found = []
    for file in sorted(folder.glob("events*")):
        content = file.read_bytes()
        while content:
            (size,) = struct.unpack("<Q", content[:8])
            found.append(events.Event.FromString(content[12 : 12 + size]))
            content = content[16 + size :]
    return found


LAW = Histogram(np.array([0.0, 1.0, 3.0]), np.array([0.25, 0.75]))


def test_event_files_hold_hyperparameters_and_laws(tmp_path: Path):
    sink = TensorBoardSink(tmp_path)
    sink.start(RunStart(0, 0, False, {"env": "CartPole-v1", "steps": 100, "options": {"k": 4, "hidden": (8, 8)}}))
    sink.write_histograms(10, {"laws/return": LAW}, seed=0)
    sink.close()
    values = [value for event in events_of(tmp_path / "run_seed0_1") for value in event.summary.value]
    (law,) = (value.histo for value in values if value.tag == "laws/return")
    assert (law.min, law.max, law.sum, list(law.bucket)) == (0.0, 3.0, 0.25 * 0.5 + 0.75 * 2.0, [0.25, 0.75])
    noted = b"".join(value.metadata.plugin_data.content for value in values)
    assert all(word in noted for word in (b"CartPole-v1", b"options/k", b"(8, 8)", b"rollout/ep_rew_mean"))


def test_a_resumed_run_goes_on_in_its_newest_folder(tmp_path: Path):
    """What was written after the step of the checkpoint is dropped by the readers, and written again."""
    for resumed, step in ((False, 0), (True, 20), (False, 0)):
        sink = TensorBoardSink(tmp_path)
        sink.start(RunStart(0, step, resumed, {}))
        for now in range(step + 10, 50, 10):
            sink.write(now, {"a": float(now)}, seed=0)
        sink.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run_seed0_1", "run_seed0_2"]
    purges = [event for event in events_of(tmp_path / "run_seed0_1") if event.session_log.status == 1]
    assert [event.step for event in purges] == [21]


def test_a_resumed_csv_file_has_every_step_once(tmp_path: Path):
    path = tmp_path / "run.csv"
    for resumed, step in ((False, 0), (True, 20)):
        sink = CSVSink(path)
        for seed in (0, 1):
            sink.start(RunStart(seed, step, resumed, {}))
        for now in range(step + 10, 50, 10):
            sink.write(now, {"a": float(now)}, seed=0)
            sink.write(now, {"a": float(now)}, seed=1)
        sink.close()
    rows = path.read_text().splitlines()[1:]
    assert sorted(rows) == sorted(f"{now},{seed},a,{now}.0" for now in (10, 20, 30, 40) for seed in (0, 1))


def test_a_fresh_run_removes_nothing_from_a_csv_file(tmp_path: Path):
    for _ in range(2):
        sink = CSVSink(tmp_path / "run.csv")
        sink.start(RunStart(0, 0, False, {}))
        sink.write(10, {"a": 1.0}, seed=0)
        sink.close()
    assert (tmp_path / "run.csv").read_text().count("10,0,a,1.0") == 2


def test_a_missing_wandb_is_named_with_its_install_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(UsageError, match=r"needs the package wandb.*pip install 'sentinel-rl\[wandb\]'"):
        WandbSink("project")


class Detailed(Own):
    """A sink that takes all there is."""

    def start(self, run: RunStart) -> None:
        self.run = run

    def write_histograms(self, step: int, histograms: Mapping[str, Histogram], seed: int) -> None:
        self.histograms = histograms


def test_training_tells_sinks_of_its_members_and_laws():
    sink, plain = Detailed(), Own()
    options = {"k": 2, "hidden": (4,), "atoms": 5, "capacity": 64, "samples": 8, "batch": 8, "warmup": 10}
    train("sentinel", "CartPole-v0", 60, seeds=[3], sinks=[sink, plain], learn_every=20, **options)
    assert (sink.run.seed, sink.run.step, sink.run.resumed) == (3, 0, False)
    assert sink.run.about["options"]["k"] == 2
    _, scalars, _ = sink.written[-1]
    assert scalars["members/weight_0"] + scalars["members/weight_1"] == pytest.approx(1.0)
    law = sink.histograms["laws/return"]
    assert law.masses.sum() == pytest.approx(1.0)
    middle = (law.edges[:-1] + law.edges[1:]) @ law.masses / 2
    expected = sum(scalars[f"members/weight_{i}"] * scalars[f"members/mean_{i}"] for i in range(2))
    assert middle == pytest.approx(expected, abs=3 * np.diff(law.edges)[0])


class Rows:
    """A W&B that keeps the rows it is given."""

    def __init__(self) -> None:
        self.rows: list[dict[str, object]] = []

    def init(self, **options: object) -> "Rows":
        return self

    def define_metric(self, *names: str, **options: str) -> None:
        pass

    def Histogram(self, np_histogram: tuple[list[float], list[float]]) -> str:  # noqa: N802 (W&B's name)
        return "law"

    def log(self, row: dict[str, object]) -> None:
        self.rows.append(row)

    def finish(self) -> None:
        self.rows.append({"finished": True})


def test_histograms_share_the_row_of_the_scalars_of_their_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A call per step and run, and nothing that waited is lost."""
    kept = Rows()
    monkeypatch.setitem(sys.modules, "wandb", kept)
    sink = WandbSink("tests", tmp_path)
    sink.write_histograms(10, {"laws/return": LAW}, seed=0)
    sink.write(10, {"a": 1.0}, seed=0)
    sink.write_histograms(20, {"laws/return": LAW}, seed=0)
    sink.write(30, {"a": 3.0}, seed=0)
    sink.write_histograms(40, {"laws/return": LAW}, seed=0)
    sink.close()
    alone = [{"step": step, "laws/return": "law"} for step in (10, 20, 40)]
    assert kept.rows == [alone[0] | {"a": 1.0}, alone[1], {"step": 30, "a": 3.0}, alone[2], {"finished": True}]


@pytest.mark.clients
def test_wandb_offline_and_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The real package writes its files without a network, and a resumed run keeps its name."""
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    for resumed, step in ((False, 0), (True, 10), (False, 0)):
        sink = WandbSink("tests", tmp_path, "sentinel", mode="offline")
        sink.start(RunStart(0, step, resumed, {"env": "CartPole-v1", "options": {"k": 4}}))
        sink.write(step + 10, {"rollout/ep_rew_mean": 21.5}, seed=0)
        sink.write_histograms(step + 10, {"laws/return": LAW}, seed=0)
        sink.close()
    # DATE-NAME, and a number behind it for the second of a name within a second.
    names = sorted(path.name.split("-")[3] for path in tmp_path.glob("wandb/offline-run-*"))
    kept = json.loads((tmp_path / "wandb-runs.json").read_text())["sentinel_seed0"]
    assert kept in names
    assert len(set(names)) == 2
    written = b"".join(path.read_bytes() for path in tmp_path.glob("wandb/offline-run-*/*.wandb"))
    assert b"rollout/ep_rew_mean" in written
    assert b"laws/return" in written
    assert b"CartPole-v1" in written
