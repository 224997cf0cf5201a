"""Templates of an entity's affixes and of words farther around it than the paper looks.

They go beyond Collins (2002), whose templates see the entity, the two words before it and
the one after: about what a base tagger has seen already. Affixes are of words in lower
case; a word shorter than an affix is its own. The templates are of the class of an entity
more than of its borders, so that with labels there are only copies with the label.
"""

from ..words import LOWER, PREFIX_3, PREFIX_4, SUFFIX_2, SUFFIX_3, SUFFIX_4
from .entity_templates import LAST, START, FixedTemplates, Part

# Suffixes of the last word, prefixes and a suffix of the first.
_AFFIXES = {
    "LS2": (Part(SUFFIX_2, LAST, 0),),
    "LS3": (Part(SUFFIX_3, LAST, 0),),
    "LS4": (Part(SUFFIX_4, LAST, 0),),
    "FP3": (Part(PREFIX_3, START, 0),),
    "FP4": (Part(PREFIX_4, START, 0),),
    "FS3": (Part(SUFFIX_3, START, 0),),
}
# Words around, named by their distance from the entity.
_AROUND = {
    "C-2": (Part(LOWER, START, -2),),
    "C-3": (Part(LOWER, START, -3),),
    "C+2": (Part(LOWER, LAST, 2),),
    "C-2-1": (Part(LOWER, START, -2), Part(LOWER, START, -1)),
    "C+1+2": (Part(LOWER, LAST, 1), Part(LOWER, LAST, 2)),
    "C-1+1": (Part(LOWER, START, -1), Part(LOWER, LAST, 1)),
}
WORD_TEMPLATES = FixedTemplates(_AFFIXES | _AROUND)
