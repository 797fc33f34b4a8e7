"""``sentinel train`` killed between the writing of a file and its renaming: every file ends the same."""

import random
import signal

import pytest

from sentinel_rl.storage.archive import read_archive_manifest
from sentinel_rl.storage.atomic import ENDING
from sentinel_rl.storage.run_folder import status
from tests.faults import children
from tests.faults.test_kill import OPTIONS, arrays_of


def command(path, env, steps, save_every, more):
    settings = [word for option in (*OPTIONS, *more) for word in ("--set", option)]
    numbers = ["--steps", steps, "--save-every", save_every, "--out", path]
    return ["train", "--env", env, "--seeds", "2", "--quiet", *settings, *map(str, numbers)]


def contents(path):
    """What is in every file of a run, without the times of the clock."""
    found = {}
    for file in sorted(each for each in path.rglob("*") if each.is_file()):
        name = file.relative_to(path).as_posix()
        if name.endswith(".monitor.csv"):
            rows = [line.split(",") for line in file.read_text().splitlines()[1:]]
            found[name] = [(row[0], row[1], row[3]) for row in rows]
        elif file.name == "state.npz":
            arrays = arrays_of(file.parent)
            found[name] = {place: (a.dtype, a.shape, a.tobytes()) for place, a in arrays.items()}
        elif file.name == "manifest.json":
            continue  # compared by its arrays; it has their checksums, of which those of times differ
        elif file.suffix == ".zip":
            manifest = read_archive_manifest(file)
            found[name] = manifest.about, manifest.leaves, manifest.step
        else:
            found[name] = file.read_bytes()
    return found


def kill_and_resume(folder, kills, env, steps, save_every, more=()):
    """Train undisturbed, then with kills in saves until that many were made; returns how many files were compared."""
    line = (env, steps, save_every, more)
    undisturbed, told = folder / "undisturbed", folder / "told.txt"
    assert children.run(children.sentinel, command(undisturbed, *line), told) == 0, told.read_text()
    whole, dice, made, compared, number = contents(undisturbed), random.Random(3), 0, 0, 0
    while made < kills:
        path, number = folder / f"run_{number}", number + 1
        while status(path).state != "finished":
            rename = dice.randrange(1, 9) if made < kills else 10**9
            arguments = command(path, *line), told, path, rename
            code = children.run(children.sentinel_until_rename, *arguments)
            assert code in (0, -signal.SIGKILL), told.read_text()
            made += code != 0
        found = contents(path)
        assert found.keys() == whole.keys()
        for name, content in found.items():
            assert content == whole[name], name
        assert not list(path.rglob(f"*{ENDING}"))
        compared += len(found)
    return compared


MOUNTAIN = ("MountainCar-v0", 600, 150, ("v_min=-100", "v_max=0"))


@pytest.mark.attack("kill-in-save")
def test_kills_in_saves_on_a_gymnasium_environment(tmp_path, attacks):
    assert kill_and_resume(tmp_path, 3, *MOUNTAIN) >= 10
    attacks(3)


@pytest.mark.attack("kill-in-save")
@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [MOUNTAIN, ("CartPole-v0", 800, 20, ()), ("sentinel/highway-v1", 400, 100, ("encoder=mlp",))],
    ids=["mountain", "pole", "highway"],
)
def test_thirty_kills_in_saves(tmp_path, attacks, line):
    assert kill_and_resume(tmp_path, 12, *line) >= 9
    attacks(12)


@pytest.mark.attack("kill-same-files")
@pytest.mark.slow
def test_kills_at_any_moment_on_the_highway(tmp_path, attacks):
    """Rewards there are no whole numbers: a rounded one would show."""
    import time

    line = ("sentinel/highway-v1", 400, 100, ("encoder=mlp",))
    undisturbed, path, told = tmp_path / "undisturbed", tmp_path / "run", tmp_path / "told.txt"
    assert children.run(children.sentinel, command(undisturbed, *line), told) == 0, told.read_text()
    dice = random.Random(5)
    for _ in range(8):
        process = children.start(children.sentinel, command(path, *line), told)
        process.join(dice.uniform(2, 12))
        process.kill()
        process.join()
        time.sleep(0.05)
        if status(path).state == "finished":
            break
    if status(path).state != "finished":
        assert children.run(children.sentinel, command(path, *line), told) == 0, told.read_text()
    attacks(8)
    assert contents(path) == contents(undisturbed)
