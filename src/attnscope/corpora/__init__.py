"""Named data sets: what they are, where they are, and how they are fetched. None of them is shipped."""

from .fetching import add_file as add_file
from .fetching import fetch as fetch
from .finding import DATA as DATA
from .finding import dataset as dataset
from .finding import dataset_file as dataset_file
from .finding import dataset_named as dataset_named
from .finding import files_here as files_here
from .finding import named_file as named_file
from .table import CORPORA as CORPORA
from .table import Dataset as Dataset
from .table import Download as Download
from .table import Layout as Layout
