"""Recordings made by hand: every view, with laws that differ, and nothing to train or compile."""

import io

import numpy as np
from PIL import Image

from sentinel_rl.viewer import About, Recording

ACTIONS = ("LANE_LEFT", "IDLE", "LANE_RIGHT", "FASTER", "SLOWER")
LENGTHS = (6, 4)
K, N, SUBSTEPS, VEHICLES = 4, 21, 3, 4


def made(
    view: str = "road", laws: bool = True, seed: int = 0, lengths=LENGTHS, own_atoms: bool = False, **words
) -> Recording:
    """A recording of random laws; `words` replace entries of what it says about itself.

    With `own_atoms` every law has its own support, as quantiles have.
    """
    rng = np.random.default_rng(seed)
    actions = words.get("actions", ACTIONS)
    steps, episodes, count = sum(lengths), len(lengths), len(actions)
    ends = np.cumsum(lengths) - 1
    terminated = np.zeros(steps, bool)
    terminated[ends[0]] = True
    arrays = {
        "lengths": np.array(lengths, np.int32),
        "obs": rng.normal(size=(steps, 5)).astype(np.float32),
        "action": np.zeros(steps, np.int32),
        "reward": rng.uniform(size=steps).astype(np.float32),
        "terminated": terminated,
        "truncated": np.zeros(steps, bool),
        "realised": np.append(rng.uniform(2, 8, steps - 1), np.nan).astype(np.float32),
    }
    told = _laws(rng, steps, count, own_atoms) if laws else _estimates(rng, steps, count)
    arrays |= told | _picture(view, rng, steps, episodes, count)
    arrays["action"] = arrays["value"].argmax(-1).astype(np.int32)
    measures = {"aleatory": "cvar:0.25", "epistemic": "cvar:0.5"} if laws else {}
    parts = ("mean", "additive") if laws else ("mean", "epistemic_sd")
    road = {"lanes": 3, "substeps": SUBSTEPS} if view == "road" else {}
    about = {
        "env": "made/Road-v0",
        "agent": "sentinel",
        "objective": "cvar:0.5 o cvar:0.25",
        "note": "",
        "actions": actions,
        "seed": 7,
        "gamma": 0.9,
        "time_limit": "terminal",
        "per_second": 1.0,
        "view": view,
        "parts": parts,
        **measures,
        **road,
    }
    return Recording(About(**about | words), arrays)


def assess_in_numpy(recording: Recording, decision: int, epistemic: float, aleatory: float) -> np.ndarray:
    """The composite CVaR of every action, by sorting and cutting: independent of the library's formulas."""
    probs, weights = (recording.arrays[name][decision].astype(float) for name in ("probs", "weights"))
    atoms = np.broadcast_to(recording.arrays["atoms"].astype(float), recording.arrays["probs"].shape)[decision]
    risks = np.array(
        [[_cvar(*law, aleatory) for law in zip(*one, strict=True)] for one in zip(atoms, probs, strict=True)]
    )
    return np.array([_cvar(risks[:, a], weights[:, a], epistemic) for a in range(risks.shape[1])])


def _cvar(values, masses, alpha):
    order = np.argsort(values)
    left, total = alpha, 0.0
    for value, mass in zip(values[order], masses[order] / masses.sum(), strict=True):
        total += min(mass, left) * value
        left -= min(mass, left)
    return total / alpha


def _laws(rng, steps, count, own_atoms):
    atoms = np.linspace(0, 10, N).astype(np.float32)
    centre = rng.uniform(3, 7, (steps, 1, count, 1)) + rng.normal(0, 0.5, (steps, K, count, 1))
    width = rng.uniform(0.5, 2.5, (steps, 1, count, 1))
    masses = np.exp(-(((atoms - centre) / width) ** 2) / 2) + 1e-4
    probs = (masses / masses.sum(-1, keepdims=True)).astype(np.float32)
    if own_atoms:
        levels = np.linspace(-1.5, 1.5, N)
        atoms = np.sort(centre + width * levels + rng.normal(0, 0.05, (steps, K, count, N)), -1).astype(np.float32)
        probs = np.full(atoms.shape, 1 / N, np.float32)
    weights = np.moveaxis(rng.dirichlet(np.full(K, 4.0), (steps, count)), -1, 1).astype(np.float32)
    told = {"atoms": atoms, "probs": probs, "weights": weights}
    means = (probs * atoms).sum(-1)
    mean = (weights * means).sum(1)
    pairs = np.stack([np.broadcast_to(atoms, probs.shape), probs], axis=-1).astype(float)
    risks = np.array([_cvar(*pair.T, 0.25) for pair in pairs.reshape(-1, N, 2)]).reshape(probs.shape[:-1])
    value = np.array(
        [[_cvar(risks[t, :, a], weights[t, :, a].astype(float), 0.5) for a in range(count)] for t in range(steps)]
    )
    parts = np.stack([mean, (weights * risks).sum(1)], axis=1)
    return told | {"value": value.astype(np.float32), "parts": parts.astype(np.float32)}


def _estimates(rng, steps, count):
    value = rng.normal(size=(steps, count)).astype(np.float32)
    return {"value": value, "parts": np.stack([value, np.abs(value)], axis=1)}


def _picture(view, rng, steps, episodes, count):
    if view == "chart":
        return {}
    if view == "frames":
        colours = rng.integers(0, 255, (steps + episodes, 3))
        images = [_image(tuple(map(int, colour))) for colour in colours]
        ends = np.cumsum(list(map(len, images))).astype(np.int32)
        return {
            "image_at": np.arange(len(images), dtype=np.int32),
            "image_ends": ends,
            "images": np.frombuffer(b"".join(images), np.uint8),
        }
    frames = steps * SUBSTEPS + episodes
    x = 2.0 * np.arange(frames)[:, None] + 12.0 * np.arange(VEHICLES)
    y = np.broadcast_to(4.0 * (np.arange(VEHICLES) % 3), x.shape)
    cars = np.stack([x, y, np.zeros_like(x), np.full_like(x, 25.0)], axis=-1).astype(np.float32)
    crashed = np.zeros((frames, VEHICLES), bool)
    crashed[LENGTHS[0] * SUBSTEPS, 0] = True
    path = np.arange(1, 6)[:, None] * np.array([4.0, 0.5])
    return {
        "cars": cars,
        "crashed": crashed,
        "seen": np.tile(np.array([0, 1, 2, -1], np.int32), (steps, 1)),
        "paths": np.broadcast_to(path, (steps, count, 5, 2)).astype(np.float32),
        "wrecked": rng.uniform(size=(steps, count)) < 0.2,
    }


def _image(colour):
    content = io.BytesIO()
    Image.new("RGB", (40, 30), colour).save(content, "WEBP")
    return content.getvalue()
