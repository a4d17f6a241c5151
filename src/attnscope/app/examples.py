"""A few telling sentences, so that a newcomer sees something worth seeing at once."""

from typing import Any

DEMO = (
    ("the key to the cabinets", None, "The verb agrees with key, and cabinets tries to lead astray."),
    ("the keys to the cabinet", None, "The same with the numbers exchanged."),
    ("the author near the lakes that the pilots admire", None, "Two plurals stand between the subject and its verb."),
    ("the teacher and the doctor", None, "Two singulars make a plural."),
)
BY_TASK = {
    "classifier": (
        ("A film that is never less than gripping.", None, "The negated word says the opposite of the sentence."),
        ("The plot is thin, but the actors save it.", None, "Which half of the sentence decides?"),
    ),
    "masked_lm": (
        ("The doctor told the nurse that [MASK] would be late.", None, "Which person does the pronoun stand for?"),
        ("The keys to the cabinet [MASK] on the table.", None, "Does the model pass over cabinet?"),
    ),
    "causal_lm": (
        ("When Mary and John went to the shop, John gave a drink to", None, "Who gets it? A name must be copied."),
        ("The keys to the cabinet", None, "Is the next word are, whatever stands nearest?"),
        ("one two three four one two three", None, "What follows was there before: look for induction heads."),
    ),
    "encoder": (
        ("She sat on the bank of the river.", None, "Which words tell what kind of bank this is?"),
        ("The trophy does not fit into the suitcase because it is too big.", None, "What does it stand for?"),
    ),
    "encoder_decoder": (
        ("translate English to German: The house is small.", None, "Which source word stands behind each output?"),
    ),
}


def examples_for(name: str, task: str, mask: str | None) -> list[dict[str, Any]]:
    """Texts for a model, each with the reason to look at it; `mask` is how its tokenizer writes the mask."""
    chosen = DEMO if name == "demo" else BY_TASK.get(task, BY_TASK["encoder"])
    written = mask or "[MASK]"
    return [{"text": text.replace("[MASK]", written), "second": second, "why": why} for text, second, why in chosen]
