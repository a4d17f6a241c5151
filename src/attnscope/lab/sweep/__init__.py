"""Many attention classifiers trained in one pass over the data, each equal to what it would be alone."""

from .runs import Recipe as Recipe
from .runs import RunSettings as RunSettings
from .runs import TrainedRun as TrainedRun
from .runs import initial_weights as initial_weights
from .training import begin_runs as begin_runs
from .training import shares as shares
from .training import sweep as sweep
from .training import sweep_groups as sweep_groups
from .training import train_epoch as train_epoch
