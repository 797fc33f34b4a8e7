"""Training and evaluation: the same agents compiled with a JAX environment, or in a loop over any Gymnasium one."""

from sentinel_rl.training.compiled import Best, Progress
from sentinel_rl.training.evaluation import evaluate, evaluate_watched
from sentinel_rl.training.metrics import Episodes, Metric, measure, metric_names, register_metric
from sentinel_rl.training.population import use_all_cores
from sentinel_rl.training.population_evaluation import Evaluation
from sentinel_rl.training.result import Result
from sentinel_rl.training.schedule import Every, Plan, Triangular
from sentinel_rl.training.sinks import ConsoleSink, CSVSink, Sink, TensorBoardSink
from sentinel_rl.training.trainer import train
from sentinel_rl.training.wandb_sink import WandbSink

__all__ = [
    "Best",
    "CSVSink",
    "ConsoleSink",
    "Episodes",
    "Evaluation",
    "Every",
    "Metric",
    "Plan",
    "Progress",
    "Result",
    "Sink",
    "TensorBoardSink",
    "Triangular",
    "WandbSink",
    "evaluate",
    "evaluate_watched",
    "measure",
    "metric_names",
    "register_metric",
    "train",
    "use_all_cores",
]
