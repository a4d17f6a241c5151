"""Makes questions that one of several paragraphs answers, of WikiText: sentences with a name or number taken out.

ATTNSCOPE_DATA=folder python docs/answer_questions.py 200 questions.jsonl

Each question shows the beginning of a sentence and asks for the whole; what the answer is judged by, its `span`, is a
name or a number that stands in one of the documents and nowhere else in them. The other documents are paragraphs of
other articles, and one of the same article where there is one. What is chosen follows from the seed alone.
"""

import json
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from attnscope.corpora import dataset_file
from attnscope.syntax.from_text import is_heading, wikitext_words
from attnscope.syntax.lines import numbered_lines

SEED = 0
DISTRACTORS = (3, 8)
"""The fewest and the most paragraphs beside the one that answers."""
WORDS = (25, 60)
"""The fewest and the most words of a paragraph; longer ones end with the last sentence that fits."""
FIRST_WORDS = 5
"""So many words of the sentence stand before the one that is asked for, at least."""
FACT = re.compile(r"(?<=[a-z] )(?:1[0-9]{3}|20[0-9]{2}|[1-9][0-9]?(?:,[0-9]{3})+|[A-Z][a-z]{3,}(?: [A-Z][a-z]+)*)\b")
"""A year, a large number or a name, behind a word."""
NAMED = re.compile(r"\b[A-Z]\w*\W*$")
"""A name that the one asked for would only go on with."""
SENTENCE = re.compile(r"\S.*?(?<! [A-Z])(?<!\b[A-Z][a-z])[.!?]\"?(?= [A-Z\"(]|$)")
"""Up to a full stop before a capital, unless it is that of an initial or of an abbreviation of two letters."""
CLOSING = re.compile(r" ([.,;:!?)\]%]|'s\b|n't\b)")


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of an article, in running text."""

    article: str
    text: str

    @property
    def sentences(self) -> list[str]:
        """Its sentences."""
        return SENTENCE.findall(self.text)


def paragraphs(split: str) -> Iterator[Paragraph]:
    """The paragraphs of a part of WikiText, without sentences that have unknown words, cut to what a glance reads."""
    article = ""
    for _, line in numbered_lines(dataset_file("wikitext2", split)):
        stripped = line.strip()
        if is_heading(stripped):
            if not stripped.startswith("= ="):
                article = stripped.strip("= ")
        elif stripped and "<unk>" not in article:
            whole = (sentence for sentence in SENTENCE.findall(_running(stripped)) if "<unk>" not in sentence)
            kept: list[str] = []
            for sentence in whole:
                if len(" ".join([*kept, sentence]).split()) > WORDS[1]:
                    break
                kept.append(sentence)
            text = " ".join(kept)
            if len(text.split()) >= WORDS[0]:
                yield Paragraph(_running(article), text)


def _running(line: str) -> str:
    """A line of WikiText with spaces as they are written elsewhere."""
    text = CLOSING.sub(r"\1", wikitext_words(line).text)
    return re.sub(r'" ([^"]*?) "', r'"\1"', text).replace("( ", "(")


def questions(count: int) -> Iterator[dict[str, object]]:
    """So many questions, each with its documents and where the answer stands."""
    known = [paragraph for split in ("valid", "test") for paragraph in paragraphs(split)]
    chance = random.Random(SEED)
    order = chance.sample(range(len(known)), len(known))
    for place in order:
        answering = known[place]
        others = [one for one in known if one.article != answering.article]
        beside = [one for one in known if one.article == answering.article and one is not answering]
        chosen = chance.sample(others, chance.randint(*DISTRACTORS) - bool(beside))
        documents = [answering, *chosen, *(chance.sample(beside, 1) if beside else [])]
        chance.shuffle(documents)
        everything = " ".join(one.text for one in documents)
        fact = _fact(answering, everything, chance)
        if fact is None:
            continue
        sentence, start, name = fact
        yield {
            "question": f'Which sentence of these documents begins with "{sentence[:start].rstrip()}"? Write it down.',
            "documents": [[one.article, one.text] for one in documents],
            "answer": sentence[:start] + name,
            "span": name,
            "evidence": {"document": documents.index(answering), "sentence": sentence},
        }
        count -= 1
        if not count:
            return


def _fact(answering: Paragraph, everything: str, chance: random.Random) -> tuple[str, int, str] | None:
    """A sentence, where in it the answer begins, and the answer: what stands only once in all documents."""
    found = [
        (sentence, match.start(), match[0])
        for sentence in answering.sentences
        for match in FACT.finditer(sentence)
        if len(sentence[: match.start()].split()) >= FIRST_WORDS
        and not NAMED.search(sentence[: match.start()])
        and len(re.findall(rf"\b{re.escape(match[0])}\b", everything)) == 1
    ]
    return chance.choice(found) if found else None


if __name__ == "__main__":
    if len(sys.argv) != 3 or not sys.argv[1].isdecimal():
        sys.exit(__doc__)
    made = list(questions(int(sys.argv[1])))
    lines = (json.dumps(one, ensure_ascii=False) + "\n" for one in made)
    Path(sys.argv[2]).write_text("".join(lines), encoding="utf-8")
    sys.stdout.write(f"{len(made)} questions\n")
