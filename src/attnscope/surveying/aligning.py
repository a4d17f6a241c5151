"""A sentence as a model reads it: every word finds its tokens, or the reason why not is counted."""

from ..capture.encoding import Encoded, encode
from ..capture.reader import Reader
from ..capture.vocabulary import embedding_count
from ..errors import BadInput
from ..record.tokens import readable
from ..statistics import PARSE, TAGS, Reading
from ..syntax import Sentence, Unaligned, words_of_tokens


def read_sentence(reader: Reader, sentence: Sentence, place: int, needs: frozenset[str]) -> tuple[Reading, Encoded]:
    """The tokens of a sentence with the word of each; raises `Unaligned` with a reason that can be counted."""
    if TAGS in needs and sentence.tags is None:
        raise Unaligned("it has no parts of speech")
    if PARSE in needs and (sentence.heads is None or sentence.relations is None):
        raise Unaligned("it has no heads and relations")
    try:
        # words already split only where the tokenizer does not tell the characters of a token: splitting loses spacing
        text = sentence.text if reader.tokenizer.is_fast else list(sentence.words)
        encoded = encode(reader.tokenizer, text, None, truncate=False, embedded=embedding_count(reader.model))
    except BadInput as error:
        raise Unaligned("the tokenizer cannot read it") from error
    if reader.longest is not None and len(encoded) > reader.longest:
        raise Unaligned(f"it has more than the {reader.longest} tokens that the model reads")
    inputs = {name: ids for name, ids in encoded.inputs.items() if name == "input_ids" or name in reader.accepted}
    if encoded.offsets is None:
        words = encoded.word_ids
        if needs and {word for word in words if word is not None} != set(range(len(sentence))):
            raise Unaligned("a word has no token")
    else:
        try:
            words = words_of_tokens(sentence.spans, encoded.offsets, encoded.special)
        except Unaligned:
            if needs:
                raise
            words = encoded.word_ids  # no statistic asks for the annotation of words, so any will do
    reading = Reading(
        place=place,
        sentence=sentence,
        token_ids=tuple(encoded.inputs["input_ids"].tolist()),
        tokens=tuple(readable(encoded.tokens)),
        special=encoded.special,
        words=words,
    )
    return reading, Encoded(inputs, encoded.tokens, encoded.word_ids, encoded.special)
