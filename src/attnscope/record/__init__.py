"""What one model did on one text, and what a method says of it."""

from .attention import AttentionRecord as AttentionRecord
from .model import AnsweringModel as AnsweringModel
from .model import Model as Model
from .model import Text as Text
from .scores import TokenScores as TokenScores
from .segments import Segments as Segments
from .segments import Span as Span
from .segments import TokenSegments as TokenSegments
from .target import Target as Target
from .vector_record import VectorRecord as VectorRecord
from .words import readable as readable
