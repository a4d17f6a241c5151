"""English words that say nothing by themselves: articles, pronouns, prepositions, conjunctions, forms of be."""

STOP_WORDS = frozenset(
    (
        "a an the this that these those it its he she they them his her their we us our you your i me my "
        "of in on at to for from by with about into over under between through during after before as than "
        "and or but nor so yet if because while although though when where which who whom whose what how "
        "is are was were be been being am has have had do does did will would can could should may might must "
        "not no 's 'd 'll 're 've n't there here then just also very too more most some any all each both such"
    ).split()
)
