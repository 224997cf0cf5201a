"""The running sentence of Collins (2002), section 3."""

from spacy_treecrf.rerank.candidates import Candidate, CandidateSegment

SENTENCE = (
    "Whether you ’ re an aging flower child or a clueless Gen Xer , “ The Day They Shot "
    "John Lennon , ” playing at the Dougherty Arts Center , entertains the imagination ."
)
WORDS = tuple(SENTENCE.split())
GEN_XER, LENNON, ARTS = (11, 13, "PER"), (15, 21, "WORK"), (26, 29, "FAC")
LOWER_CASE_LIST = (
    "whether you re an aging flower child or a clueless the day they shot playing at "
    "arts center entertains imagination"
)
LOWER_CASE = LOWER_CASE_LIST.split()


def make_segment(*span_sets, words=WORDS, document=0, gold=None):
    """A segment with candidates of falling probability."""
    candidates = tuple(
        Candidate(-float(rank), tuple(sorted(spans)))
        for rank, spans in enumerate(span_sets)
    )
    return CandidateSegment(tuple(words), candidates, document, gold)


def readable(strings):
    """The features with the separator of the paper's examples."""
    return {s.replace("\x1f", "_").replace("\x00", "NULL") for s in strings}
