"""Studies: grids of agents, environments and seeds, their results on disk, and what can be said of them."""

from sentinel_rl.study.cell import Cell
from sentinel_rl.study.frontier import Difference, Estimate, Played, difference, dominated, estimate
from sentinel_rl.study.grid import parse_shard, run_grid
from sentinel_rl.study.progress import GridProgress
from sentinel_rl.study.record import Record
from sentinel_rl.study.run import run_cell
from sentinel_rl.study.scenarios import Stressed, stress
from sentinel_rl.study.statistics import Comparison, Summary, compare, holm, summarise
from sentinel_rl.study.store import Store
from sentinel_rl.training.population_evaluation import Evaluation

__all__ = [
    "Cell",
    "Comparison",
    "Difference",
    "Estimate",
    "Evaluation",
    "GridProgress",
    "Played",
    "Record",
    "Store",
    "Stressed",
    "Summary",
    "compare",
    "difference",
    "dominated",
    "estimate",
    "holm",
    "parse_shard",
    "run_cell",
    "run_grid",
    "stress",
    "summarise",
]
