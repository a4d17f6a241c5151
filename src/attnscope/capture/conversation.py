"""Conversations in: messages through the tokenizer's own chat template, documents and a question among them, an answer.

The answer is given, or generated. Where each turn, document and sentence lies in the text is known, and so to which of
them each token belongs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import NoneType
from typing import Any

import torch
from transformers import PreTrainedTokenizerBase

from ..errors import BadInput
from ..record import Segments, Span, Text
from ..record.schema import quote, reason_of
from ..record.segments import MARKER, numbered
from .alignment import offsets_by_decoding
from .checkpoints import check_ids, embedding_count
from .encoding import Encoded, Passage, checked_parts, encode, encode_ids, special_tokens
from .hub_model import HubModel, checked_generation, generate

ROLES = ("system", "developer", "user", "assistant", "tool")
INSTRUCTION = "Answer the question from these documents."
"""What stands before documents; messages of your own say it in your own words."""
MARKERS = "markers"
"""What the template writes is called: role markers, and where it has one a system prompt of its own."""
CUE = "Answer:\n"
"""What a model without a chat template is to go on from."""
NEW_TOKENS = 256
"""How long an answer may become where the user does not say."""
PLAIN = (str, int, float, NoneType)
"""What of the options of `generate` a card can hold."""
Documents = Sequence[str | tuple[str, str]] | Mapping[str, str]
"""Texts, pairs of a title and a text, or texts by their titles."""
Message = Mapping[str, str]


@dataclass(frozen=True)
class Written:
    """A text put together of parts, with the spans that some of them are, level by level."""

    text: str = ""
    spans: tuple[tuple[str, Span], ...] = ()

    def __add__(self, part: str) -> "Written":
        return Written(self.text + part, self.spans)

    def marked(self, level: str, part: str, name: str, kind: str) -> "Written":
        """The text with one more part, which is a span."""
        span = Span(len(self.text), len(self.text) + len(part), name, kind)
        return Written(self.text + part, (*self.spans, (level, span)))

    def followed_by(self, part: "Written") -> "Written":
        """The text with another one behind it, spans and all."""
        moved = [(level, _moved(span, len(self.text))) for level, span in part.spans]
        return Written(self.text + part.text, (*self.spans, *moved))


def _moved(span: Span, by: int) -> Span:
    return replace(span, start=span.start + by, end=span.end + by)


# ---- what is asked


def checked_messages(messages: Any) -> list[dict[str, str]]:
    """The messages of a conversation, each with a role that there is and a content that is a text."""
    if not isinstance(messages, Sequence) or isinstance(messages, str) or not messages:
        raise BadInput('messages= is a list of {"role": …, "content": …}, one for each turn, with at least one.')
    for place, message in enumerate(messages):
        if not isinstance(message, Mapping) or set(message) != {"role", "content"}:
            keys = f"the keys {quote(sorted(map(str, message)))}" if isinstance(message, Mapping) else quote(message)
            raise BadInput(f'Message {place} has the keys "role" and "content" and no others, not {keys}.')
        if message["role"] not in ROLES:
            raise BadInput(f"The role of message {place} is one of {', '.join(ROLES)}, not {quote(message['role'])}.")
        if not isinstance(message["content"], str) or not message["content"].strip():
            raise BadInput(f"The content of message {place} is empty, or no text; give at least one word.")
    return [dict(message) for message in messages]


def checked_documents(documents: Any) -> list[tuple[str, str]]:
    """The title and the text of each document."""
    if isinstance(documents, Mapping):
        documents = list(documents.items())
    if not isinstance(documents, Sequence) or isinstance(documents, str) or not documents:
        raise BadInput("documents= is a list of texts or of (title, text), or texts by title; with at least one.")
    found = []
    for place, document in enumerate(documents):
        pair = (f"document {place + 1}", document) if isinstance(document, str) else document
        fits = isinstance(pair, (tuple, list)) and len(pair) == 2 and all(isinstance(part, str) for part in pair)
        if not fits:
            raise BadInput(f"Document {place} is a text, or (title, text), not {quote(document)}.")
        title, text = pair
        if not text.strip():
            raise BadInput(f"Document {place} ({quote(title)}) is empty: leave it out, or give its text.")
        found.append((" ".join(title.split()) or f"document {place + 1}", text.strip()))
    return found


def asked(documents: Sequence[tuple[str, str]], question: str) -> Written:
    """A question behind its documents, each under its title, as one message."""
    written = Written()
    if documents:
        written += f"{INSTRUCTION}\n\n"
        titles = numbered([Span(0, 1, title) for title, _ in documents])
        for span, (title, text) in zip(titles, documents, strict=True):
            headed = text if title == span.name and title.startswith("document ") else f"{title}\n{text}"
            written = written.marked("document", f"{headed}\n\n", span.name, "document")
    asking = f"Question: {question.strip()}" if documents else question.strip()
    return written.marked("document", asking, "question", "question")


def with_documents(messages: Any, documents: Any, question: Any) -> tuple[list[dict[str, str]], dict[int, Written]]:
    """The messages, documents and the question in the last turn of the user; and what is known of such turns."""
    titled = [] if documents is None else checked_documents(documents)
    if question is not None and (not isinstance(question, str) or not question.strip()):
        raise BadInput(f"question= is a text with at least one word, not {quote(question)}.")
    if messages is None:
        if question is None:
            raise BadInput("There are documents and nothing is asked of them: give question= or messages= too.")
        written = asked(titled, question)
        return [{"role": "user", "content": written.text}], {0: written}
    if question is not None:
        raise BadInput("Give question=, or messages= whose last turn asks: one of them.")
    turns = checked_messages(messages)
    if not titled:
        return turns, {}
    place = max((place for place, turn in enumerate(turns) if turn["role"] == "user"), default=None)
    if place is None:
        raise BadInput("Documents are put into the last turn of the user, and these messages have none.")
    written = asked(titled, turns[place]["content"])
    turns[place] = {**turns[place], "content": written.text}
    return turns, {place: written}


# ---- the template


def _rendered(tokenizer: PreTrainedTokenizerBase, messages: Sequence[Message], goes_on: bool = True) -> str:
    """The conversation as the template writes it, up to where the answer begins."""
    try:
        text = tokenizer.apply_chat_template(
            [dict(message) for message in messages], tokenize=False, add_generation_prompt=goes_on
        )
    except Exception as error:
        raise BadInput(f"The chat template of this tokenizer refuses these messages: {reason_of(error)}.") from error
    return str(text)


def _with_stand_ins(tokenizer: PreTrainedTokenizerBase, messages: Sequence[Message], goes_on: bool = True) -> list[str]:
    """What the template writes before, between and behind the contents, by rendering others in their place."""
    stand_ins = [f"\ue000{place}\ue001" for place in range(len(messages))]
    rest = _rendered(
        tokenizer, [{**turn, "content": one} for turn, one in zip(messages, stand_ins, strict=True)], goes_on
    )
    markers = []
    for place, stand_in in enumerate(stand_ins):
        marker, found, rest = rest.partition(stand_in)
        if not found:
            raise BadInput(f"The chat template of this tokenizer leaves out message {place}: leave it out too.")
        markers.append(marker)
    return [*markers, rest]


def chat(tokenizer: PreTrainedTokenizerBase, messages: Sequence[Message], known: Mapping[int, Written]) -> Written:
    """The conversation as the template writes it, with its turns and markers, and what is known of some of them."""
    text = _rendered(tokenizer, messages)
    first, *others = _with_stand_ins(tokenizer, messages)
    names = numbered([Span(0, 1, message["role"]) for message in messages])
    written = Written().marked("turn", first, MARKERS, MARKER) if first else Written()
    for place, (message, marker) in enumerate(zip(messages, others, strict=True)):
        content, inside = message["content"], known.get(place, Written(message["content"]))
        stripped = content.strip()
        behind = text[len(written.text) :]
        if behind.startswith(content + marker):
            shift = 0
        elif behind.startswith(stripped + marker):
            content, shift = stripped, content.index(stripped)
        else:
            raise BadInput(
                f"The chat template of this tokenizer rewrites the content of message {place}, so that its turn cannot"
                " be told: write the text yourself and record that."
            )
        kept = [(level, _moved(span, -shift)) for level, span in inside.spans]
        turn = Span(0, len(content), names[place].name, "turn")
        written = written.followed_by(Written(content, (("turn", turn), *kept)))
        written = written.marked("turn", marker, MARKERS, MARKER) if marker else written
    if written.text != text:
        raise BadInput("The chat template of this tokenizer writes other markers for other texts: record the text.")
    return written


def turn_ends(tokenizer: PreTrainedTokenizerBase, messages: Sequence[Message]) -> list[int]:
    """The special token by which the template ends a turn of the assistant, if there is one."""
    try:
        behind = _with_stand_ins(tokenizer, [*messages, {"role": "assistant", "content": "x"}], goes_on=False)[-1]
    except BadInput:
        return []
    ids = tokenizer(behind, add_special_tokens=False, verbose=False)["input_ids"]
    return [int(ids[0])] if len(ids) and special_tokens(tokenizer, ids[:1])[0] else []


def plain(written: Written) -> Written:
    """What a model without a chat template reads: documents and question as text, and where to go on."""
    return written + "\n" + CUE


# ---- passages


def conversation_passage(
    reader: HubModel,
    messages: Any,
    documents: Any,
    question: Any,
    answer: Any,
    segments: Segments | None,
    options: Mapping[str, Any],
) -> Passage:
    """A conversation and its answer as the model reads them, with the segments of both.

    Without a given answer, an assistant's turn at the end of the messages is the answer, else one is generated, with
    these options.
    """
    if reader.task != "causal_lm":
        raise BadInput(
            f"{type(reader.model).__name__} is no causal language model, which messages=, documents= and question= are"
            " for: record its text."
        )
    tokenizer = reader.tokenizer
    turns, known = with_documents(messages, documents, question)
    if answer is None and len(turns) > 1 and turns[-1]["role"] == "assistant":
        answer = turns.pop()["content"]
    if answer is not None and (not isinstance(answer, str) or not answer.strip()):
        raise BadInput(f"answer= is a text with at least one word, not {quote(answer)}.")
    has_template = bool(getattr(tokenizer, "chat_template", None))
    if not has_template and messages is not None:
        raise BadInput(
            f"The tokenizer of {reader.name} has no chat template, so it takes no messages=: give documents= and"
            " question=, which such a model reads as plain text, or record the text itself."
        )
    prompt = chat(tokenizer, turns, known) if has_template else plain(known[0])
    source = _source(reader, prompt, has_template)
    notes: dict[str, Any] = {"prompt_tokens": len(source), "form": "chat" if has_template else "plain text"}
    if answer is not None:
        checked_parts(answer)
        if options:
            raise BadInput(f"The answer is given, so nothing is generated: leave {next(iter(options))}= out.")
        new = given_ids(tokenizer, prompt.text, source.inputs["input_ids"].tolist(), answer)
        check_ids(tokenizer, new, embedding_count(reader.model))
        written_by = "given"
    else:
        wishes = dict(options)
        most = _room(reader, len(source), wishes.pop("max_new_tokens", None))
        seed = wishes.pop("seed", None)
        generation = checked_generation(wishes, seed)
        ends = turn_ends(tokenizer, turns) if has_template else []
        new = generate(reader, source, most, generation, ends).inputs["input_ids"].tolist()[len(source) :]
        if not new:
            raise BadInput(f"{reader.name} answers nothing to this: it ends at once.")
        written_by = "model"
        notes["generation"] = {name: value for name, value in generation.items() if isinstance(value, PLAIN)}
    if reader.longest is not None and len(source) + len(new) > reader.longest:
        raise BadInput(_too_long(len(source) + len(new), reader.longest))
    text, offsets = spelled_behind(tokenizer, source.inputs["input_ids"].tolist(), new)
    whole = prompt.marked("turn", text, "answer", "answer") if has_template else prompt + text
    whole = replace(
        whole, spans=(*whole.spans, ("document", Span(len(prompt.text), len(whole.text), "answer", "answer")))
    )
    behind = replace(
        encode_ids(tokenizer, new),
        offsets=tuple((start + len(prompt.text), end + len(prompt.text)) for start, end in offsets),
    )
    joined = replace(source.followed_by(behind), offsets=(source.offsets or ()) + (behind.offsets or ()))
    notes |= {"answer": text, "written_by": written_by}
    return Passage(whole.text, joined, None, segments=segments_in(whole, segments), notes=notes)


def _source(reader: HubModel, prompt: Written, has_template: bool) -> Encoded:
    """The tokens of a prompt, as the template has them tokenized; what the template writes is special."""
    tokenizer = reader.tokenizer
    embedded = embedding_count(reader.model)
    encoded = encode(tokenizer, prompt.text, None, embedded=embedded, add_special_tokens=not has_template)
    if reader.longest is not None and len(encoded) >= reader.longest:
        raise BadInput(_too_long(len(encoded), reader.longest))
    inputs = {name: ids for name, ids in encoded.inputs.items() if name == "input_ids" or name in reader.accepted}
    offsets = encoded.offsets
    if offsets is None:
        offsets = offsets_by_decoding(tokenizer, inputs["input_ids"].tolist(), encoded.special, prompt.text)
    markers = [range(span.start, span.end) for level, span in prompt.spans if level == "turn" and span.kind == MARKER]
    is_marker = torch.zeros(len(prompt.text) + 1, dtype=torch.bool)
    for marker in markers:
        is_marker[marker.start : marker.stop] = True
    special = tuple(
        quiet or bool(start < end and is_marker[start:end].all())
        for quiet, (start, end) in zip(encoded.special, offsets, strict=True)
    )
    word_ids = tuple(None if quiet else word for quiet, word in zip(special, encoded.word_ids, strict=True))
    return replace(encoded, inputs=inputs, offsets=offsets, special=special, word_ids=word_ids)


def segments_in(written: Written, given: Segments | None) -> Segments:
    """The levels of a conversation: turns, documents, those the user gives of one of its texts, and sentences."""
    levels: dict[str, list[Span]] = {"turn": [], "document": []}
    for level, span in written.spans:
        levels[level].append(span)
    levels = {level: spans for level, spans in levels.items() if spans}
    if given is not None:
        if not isinstance(given, Segments):
            raise BadInput(f"segments= takes attnscope.Segments of one of the texts, not {type(given).__name__}.")
        start = written.text.find(given.text)
        if start < 0 or written.text.find(given.text, start + 1) >= 0:
            raise BadInput("The text of segments= is to be found once in the conversation: a message or a document.")
        for level, spans in given.levels.items():
            if level in levels:
                raise BadInput(f"The conversation has a level {quote(level)} of its own: call yours by another name.")
            levels[level] = [_moved(span, start) for span in spans]
    segments = Segments(written.text, {level: tuple(spans) for level, spans in levels.items()})
    return segments if "sentence" in levels else segments.sentences()


def _room(reader: HubModel, read: int, max_new_tokens: int | None) -> int:
    """How many tokens an answer may have."""
    if max_new_tokens is not None or reader.longest is None:
        return NEW_TOKENS if max_new_tokens is None else max_new_tokens
    return min(NEW_TOKENS, reader.longest - read)


def _too_long(tokens: int, longest: int) -> str:
    return (
        f"This conversation has {tokens} tokens and the model reads at most {longest}, its answer included: give fewer"
        " or shorter documents or turns."
    )


# ---- answers


def given_ids(tokenizer: PreTrainedTokenizerBase, prompt: str, before: Sequence[int], answer: str) -> list[int]:
    """The tokens of a given answer as they go on from the prompt: those it has behind the prompt's text, or alone."""
    before = list(before)
    joint = list(tokenizer(prompt + answer, add_special_tokens=False, verbose=False)["input_ids"])
    alone = list(tokenizer(answer, add_special_tokens=False, verbose=False)["input_ids"])
    added = len(before) - len(tokenizer(prompt, add_special_tokens=False, verbose=False)["input_ids"])
    behind = joint[len(before) - added :] if joint[: len(before) - added] == before[added:] else alone
    for ids in (behind, alone):
        if ids and spelled_behind(tokenizer, before, ids)[0] == answer:
            return ids
    spelled = spelled_behind(tokenizer, before, alone)[0] if alone else ""
    raise BadInput(
        f"The answer does not survive this tokenizer: {quote(answer)} comes back as {quote(spelled)}; give the text as"
        " the model would write it."
    )


TAIL = 4
"""So many tokens of the prompt tell a decoder that the answer is no beginning."""


def spelled_behind(
    tokenizer: PreTrainedTokenizerBase, before: Sequence[int], ids: Sequence[int]
) -> tuple[str, list[tuple[int, int]]]:
    """What tokens spell behind others, and the characters of it that each covers."""
    tail = list(before[-TAIL:])

    def spelled(count: int) -> str:
        return str(
            tokenizer.decode([*tail, *ids[:count]], skip_special_tokens=False, clean_up_tokenization_spaces=False)
        )

    start = len(spelled(0))
    text = spelled(len(ids))[start:]
    ends = [0]
    for count in range(1, len(ids)):
        # what is only half a character yet belongs to the token that completes it
        ends.append(min(max(len(spelled(count).rstrip("\ufffd")) - start, ends[-1]), len(text)))
    return text, list(zip(ends, [*ends[1:], len(text)], strict=True))


def generated_passage(
    reader: HubModel, prompt: Text, source: Encoded, max_new_tokens: int, generation: Mapping[str, Any]
) -> Passage:
    """A prompt and what the model writes behind it, or an encoder-decoder to it."""
    written = generate(reader, source, max_new_tokens, generation)
    new = written.inputs["input_ids"][1 if reader.has_both_sides else len(source) :]
    notes = {
        "answer": reader.tokenizer.decode(new.tolist(), skip_special_tokens=True),
        "generation": {name: value for name, value in generation.items() if isinstance(value, PLAIN)},
    }
    if reader.has_both_sides:
        return Passage(prompt, source, written, notes=notes)
    return Passage(prompt, written, None, notes={"prompt_tokens": len(source), **notes})
