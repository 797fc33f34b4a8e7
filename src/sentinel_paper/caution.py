"""Where caution pays: composite against additive against neutral risk, by world, at matched speed.

No claim of the paper: a study of its own, which the report shows beside the paper's claims. It trains its agents anew,
on seeds that nothing was chosen on. Nothing was tuned on the test scenarios, and what is chosen here, the measures at
which speeds match, is chosen on the calibration scenarios by speed alone.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from sentinel_paper import caution_page
from sentinel_paper.caution_cells import (
    GAPS,
    LOGGED,
    Piece,
    Settings,
    World,
    pieces,
    shard_of,
    world_of,
)
from sentinel_paper.caution_findings import CLAIMS, judged
from sentinel_paper.caution_looks import cells_look, gap_look, logged_record
from sentinel_paper.caution_numbers import Records
from sentinel_paper.claims import Claim, Finding
from sentinel_paper.trained import Execution, GridReport, Unfinished
from sentinel_rl.errors import UsageError
from sentinel_rl.study import Cell, Record, Store, run_grid

NAME = "caution"
SETTINGS = Settings()
PAPER: Mapping[str, Claim] = CLAIMS
# Records whose trained agents were asked for more than evaluations: what is asked is no part of a cell's id.
_LOOKS = "looks-1"
# On an accelerator a checkpoint of all replays takes as long as a good part of the training.
_SAVE_SECONDS = 3_600.0


def run(settings: Settings, report: GridReport, execution: Execution) -> Records:
    """Compute the cells that are missing: all of them, or those of a shard, of which there are up to five.

    Raises:
        Unfinished: when the first piece, the highway with the bootstrap alone, is not done.
    """
    if execution.engine != "local":
        raise UsageError("this study asks its agents where they were trained: use the engine local")
    parts = pieces(settings)
    wanted: dict[tuple[str, str], Cell] = {}
    for piece in shard_of(parts, execution.shard):
        wanted |= piece.cells
    for name in dict.fromkeys(world for world, _ in wanted):
        cells = [cell for (world, _), cell in wanted.items() if world == name]
        _compute(world_of(name), cells, settings, report, execution)
    done = {
        key: record for piece in parts for key, cell in piece.cells.items() if (record := _get(key, cell, execution))
    }
    if any(key not in done for key in parts[0].cells):
        raise Unfinished(f"{len(done)} of {_count(parts)} cells are done, and the first piece is not: run --shard 1/5")
    return Records(settings, done, tuple(piece.name for piece in parts if not set(piece.cells) <= set(done)))


def findings(records: Records) -> list[Finding]:
    """Judge every question in every world."""
    return judged(records)


def render(records: Records, out: Path) -> list[Path]:
    """Write the figures, the numbers and the page."""
    return caution_page.publish_study(NAME, records, judged(records), out)


def _compute(world: World, cells: list[Cell], settings: Settings, report: GridReport, execution: Execution) -> None:
    """Compute the cells of a world that have no record."""
    store = _store(world, execution)
    if world == LOGGED:
        for cell in cells:
            if cell not in store:
                store.put(logged_record(world, cell, settings.quick))
        return
    examine = None
    if world.look:
        examine = gap_look(world, settings.quick) if world in GAPS else cells_look
    run_grid(cells, store, report=report, examine=examine, save_seconds=_SAVE_SECONDS)


def _get(key: tuple[str, str], cell: Cell, execution: Execution) -> Record | None:
    record = _store(world_of(key[0]), execution).get(cell)
    return None if record is None else dataclasses.replace(record, cell=cell)


def _store(world: World, execution: Execution) -> Store:
    return Store(execution.store / _LOOKS if world.look else execution.store)


def _count(parts: tuple[Piece, ...]) -> int:
    return sum(len(piece.cells) for piece in parts)
