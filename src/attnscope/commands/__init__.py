"""The larger commands of the command line, one in a file. Whatever needs torch is imported inside its command."""

from .answer import answer as answer
from .data import data as data
from .lexicon import lexicon as lexicon
from .report import report as report
from .reproduce import reproduce as reproduce
from .serve import serve as serve
from .survey import survey as survey
from .train import train as train
