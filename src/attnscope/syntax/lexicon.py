"""The words of the grammar, by what they can do in a sentence.

No form belongs to two parts of speech and no noun has one form for both numbers, so that the words before a verb always
tell its number.
"""

SINGULAR, PLURAL = "singular", "plural"


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    """Read `singular/plural` pairs; a lone word takes a plain -s for the plural."""
    return tuple((one, many or one + "s") for one, _, many in (item.partition("/") for item in text.split()))


# Each noun as (singular, plural), by kind: people and animals act, people are "who", things hold and cover.
NOUNS = {
    "person": _pairs("""
        actor artist author baker boy brother captain child/children clerk customer dancer daughter doctor driver editor
        engineer farmer father fisherman/fishermen friend gardener girl king lady/ladies lawyer man/men manager mayor
        minister mother neighbor nurse officer painter pilot player poet policeman/policemen prince professor
        queen sailor scientist secretary/secretaries singer sister soldier son spy/spies student teacher tourist uncle
        visitor waiter wife/wives witness/witnesses woman/women writer"""),
    "animal": _pairs("""
        bird calf/calves cat cow dog eagle elephant fox/foxes frog goat goose/geese horse lion monkey mouse/mice
        ox/oxen owl pony/ponies rabbit rat snake tiger wolf/wolves"""),
    "thing": _pairs("""
        apple basket bench/benches bicycle boat bottle box/boxes bridge building cabinet candle car carpet
        castle chair church/churches clock computer country/countries curtain cup desk diary/diaries door engine fence
        garden hat house island key kitchen knife/knives ladder lake lamp leaf/leaves letter machine mountain museum
        office orange painting park pencil picture piano plate poem river road roof room scarf/scarves school
        shelf/shelves shop station story/stories street table theater ticket tower toy tree umbrella village wall
        window"""),
}

NAMES = tuple("alice anna carlos david emma hassan henry julia kenji laura maria nina omar paul peter tom".split())

PERSONAL_PRONOUNS = {SINGULAR: ("he", "she"), PLURAL: ("we", "they")}
OBJECT_PRONOUNS = {SINGULAR: ("him", "it"), PLURAL: ("us", "them")}
INDEFINITE_PRONOUNS = {
    "person": ("everybody", "everyone", "nobody", "someone"),
    "thing": ("everything", "nothing", "something"),
}
RELATIVE_PRONOUNS = {"person": ("that", "who"), "animal": ("that",), "thing": ("that",)}

POSSESSIVES = ("my", "your", "his", "her", "our", "their")
# Determiners that fit everywhere, also in a coordination ("every key and every door" would take a singular verb).
# Repeated words are drawn more often.
PLAIN_DETERMINERS = {
    SINGULAR: ("the", "the", "the", "the", "the", "the", *POSSESSIVES, "this"),
    PLURAL: ("the", "the", "the", "the", "the", "the", *POSSESSIVES, "these", "those"),
}
ARTICLE = "a"  # becomes "an" before a vowel
BARE = ""  # no determiner at all
DETERMINERS = {
    SINGULAR: (*PLAIN_DETERMINERS[SINGULAR], ARTICLE, ARTICLE, "this", "every", "each", "another", "no"),
    PLURAL: (*PLAIN_DETERMINERS[PLURAL], BARE, BARE, "these", "some", "many", "several", "few", "no"),
}
COUNTING_ADJECTIVES = ("many", "several", "few")
NUMERALS = ("two", "three", "four", "five", "six", "seven", "ten", "twelve")
COUNTABLE_AFTER = ("the", "these", "those", *POSSESSIVES, BARE)  # "the two keys", but not "some two keys"

# Each verb as (plural form, singular form), by whether it takes an object and by what its subject may be.
TRANSITIVE_VERBS = {
    "person": _pairs("""
        admire avoid bring carry/carries chase choose describe draw enjoy fear find follow forget hate hear
        ignore know like love mention miss/misses need notice prefer remember see sell understand want
        watch/watches"""),
    "animal": _pairs("avoid carry/carries chase fear find follow hear like love need notice see want watch/watches"),
    "thing": _pairs("attract block contain cover hide hold impress/impresses open protect surround"),
}
INTRANSITIVE_VERBS = {
    "person": _pairs("arrive complain disappear hesitate laugh live sing sit sleep swim talk travel wait work"),
    "animal": _pairs("disappear eat hesitate live run sit sleep swim wait"),
    "thing": _pairs("break burn change collapse disappear fall remain shine stand vanish/vanishes"),
}
COPULA = {SINGULAR: "is", PLURAL: "are"}

ADJECTIVES = {
    "person": tuple("angry brave busy clever famous happy kind lazy old polite quiet rich tall tired young".split()),
    "animal": tuple("big brave brown gentle hungry lazy old quiet small tired white wild young".split()),
    "thing": tuple(
        "beautiful big black blue broken cheap dirty empty expensive green heavy important large narrow new old red "
        "rusty simple small strange ugly valuable white wooden yellow".split()
    ),
}

# Prepositions that place, by what they stand before; and those that link a noun to another noun.
_BESIDE = tuple("behind beside by near opposite".split())
PLACE_PREPOSITIONS = {
    "person": _BESIDE,
    "animal": _BESIDE,
    "thing": (*_BESIDE, "above", "below", "beyond", "in", "on", "under"),
}
LINK_PREPOSITIONS = ("to", "of", "for", "from", "with", "without")

FREQUENCY_ADVERBS = tuple("always certainly clearly never often probably rarely really still usually".split())
CLOSING_ADVERBS = tuple("again alone badly downstairs here loudly outside quickly slowly there together".split())
OPENING_ADVERBS = tuple("apparently fortunately however now nowadays perhaps sometimes surely".split())
SUBORDINATORS = ("although", "because", "if", "while")

CONJUNCTION, PRECONJUNCTION = "and", "both"
COMMA, FULL_STOP = ",", "."
