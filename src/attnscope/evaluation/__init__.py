"""When may attention be trusted as an explanation: methods held against what the model does, and what people say."""

from .classifier_mistakes import Mistakes as Mistakes
from .classifier_mistakes import mistakes as mistakes
from .faithfulness import trust as trust
from .lexicon_study import LexiconStudy as LexiconStudy
from .lexicons import Lexicon as Lexicon
from .lexicons import read_lexicon as read_lexicon
from .ratings import lexicon as lexicon
from .result import Trust as Trust
from .texts import read_texts as read_texts
from .word_methods import WORD_METHODS as WORD_METHODS
from .word_methods import word_scores as word_scores
from .word_tally import heads_on_words as heads_on_words
