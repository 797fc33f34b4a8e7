"""What the world is drawn from: the vehicles of a highway, images, or nothing but the observation."""

import io
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt8

from sentinel_rl.envs.highway import Highway
from sentinel_rl.envs.highway.dynamics import IDLE
from sentinel_rl.training.trips import Trip

# A path is the action and, after it, so many decisions of IDLE; of its simulation steps every third is kept.
_IDLE_AFTER, _EVERY = 1, 3
# Of images: the largest number of pixels, and WebP's quality.
PIXELS, QUALITY = 110_000, 60
# All images of a recording together; where there are more, some are left out evenly.
LARGEST_IMAGES = 3_000_000
# States are traced in batches of this many: one program serves all episodes.
_BATCH = 40


def road_arrays(env: Highway, trips: Sequence[Trip]) -> dict[str, np.ndarray]:
    """Every vehicle after every simulation step, whom the agent saw, and where each action would have led."""
    parts = [_road(env, trip) for trip in trips]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _road(env: Highway, trip: Trip) -> dict[str, np.ndarray]:
    length = len(trip.action)
    before = jax.tree.map(lambda *leaves: np.stack(leaves), *trip.scenes[:length])
    chunks = []
    for start in range(0, length, _BATCH):
        rows = np.minimum(np.arange(start, start + _BATCH), length - 1)
        some = jax.tree.map(lambda leaf, rows=rows: leaf[rows], before)
        chunks.append(jax.device_get(traced(env, some, jnp.asarray(trip.action[rows]))))
    passed, crashed, seen, paths, wrecked = (
        np.concatenate([np.asarray(part) for part in parts])[:length] for parts in zip(*chunks, strict=True)
    )
    first = trip.scenes[0]
    start_row = np.stack([first.x, first.y, first.heading, first.speed], axis=-1)[None]
    return {
        "cars": np.concatenate([start_row, passed.reshape(-1, *passed.shape[2:])]).astype(np.float32),
        "crashed": np.concatenate([np.asarray(first.crashed)[None], crashed.reshape(-1, crashed.shape[-1])]),
        "seen": seen.astype(np.int32),
        "paths": paths.astype(np.float32),
        "wrecked": wrecked,
    }


@jax.jit
def traced(
    env: Highway, states: Any, actions: Int[Array, " B"]
) -> tuple[
    Float[Array, "B s V 4"], Bool[Array, "B s V"], Int[Array, "B R"], Float[Array, "B A S 2"], Bool[Array, "B A"]
]:
    """Of every state: the vehicles on the way to the next decision, those seen, and the paths of all actions."""
    follow = jnp.full(_IDLE_AFTER, IDLE, jnp.int32)

    def drive(state: Any, action: Array) -> Any:
        return jax.lax.scan(lambda now, one: env.trace(now, one), state, jnp.concatenate([action[None], follow]))[1]

    every = jnp.arange(env.spec.num_actions)
    traces = jax.vmap(jax.vmap(drive, in_axes=(None, 0)), in_axes=(0, None))(states, every)
    chosen = jax.tree.map(lambda leaf: leaf[jnp.arange(len(actions)), actions, 0], traces)
    cars = jnp.stack([chosen.x, chosen.y, chosen.heading, chosen.speed], axis=-1)
    ego = jnp.stack([traces.x[..., 0], traces.y[..., 0]], axis=-1)
    ego = ego.reshape(*ego.shape[:2], -1, 2)[:, :, _EVERY - 1 :: _EVERY]
    wrecked = jnp.any(traces.crashed[..., 0], axis=(-1, -2))
    return cars, chosen.crashed, jax.vmap(env.seen)(states), ego, wrecked


def image_arrays(trips: Sequence[Trip], draw: Callable[[Any], UInt8[np.ndarray, "h w 3"]]) -> dict[str, np.ndarray]:
    """The images of all moments, or of so many of them as there is room for."""
    images = [encode(draw(scene)) for trip in trips for scene in trip.scenes]
    return pack_images(images)


def pack_images(images: Sequence[bytes]) -> dict[str, np.ndarray]:
    """Images one after the other; every second, third, ... where all together are too large."""
    stride = 1
    while sum(map(len, images[::stride])) > LARGEST_IMAGES:
        stride += 1
    kept = images[::stride]
    return {
        "image_at": (np.arange(len(kept)) * stride).astype(np.int32),
        "image_ends": np.cumsum([len(image) for image in kept]).astype(np.int32),
        "images": np.frombuffer(b"".join(kept), np.uint8),
    }


def encode(pixels: UInt8[np.ndarray, "h w 3"]) -> bytes:
    """An image as WebP, made smaller where it has more than 110 000 pixels."""
    from PIL import Image

    picture = Image.fromarray(np.asarray(pixels, np.uint8)[..., :3])
    factor = math.sqrt(PIXELS / (picture.width * picture.height))
    if factor < 1:
        picture = picture.resize((max(1, int(picture.width * factor)), max(1, int(picture.height * factor))))
    content = io.BytesIO()
    picture.save(content, "WEBP", quality=QUALITY, method=4)
    return content.getvalue()
