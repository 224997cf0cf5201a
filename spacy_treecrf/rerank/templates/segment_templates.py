"""Which templates apply to a segment and its candidates.

A candidate is read into entities and relations, hashable, so that those that many
candidates of a segment share are printed or hashed once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ..candidates import Candidate, CandidateSegment, LabelledSpan
from ..quotes import find_quotations, quote_relations
from ..words import SegmentWords, WordTable, escape_label
from .context_templates import (
    DocumentNames,
    document_names,
    document_strings,
    neighbour_strings,
    neighbours,
    repeated_labels,
    repeated_strings,
)
from .entity_templates import Relation, entity_strings, feature
from .nested_templates import is_nested, make_forest, nested_relations, outermost, roles
from .word_templates import WORD_TEMPLATES

# A span, and if it is within another or holds one, a fourth item: its role.
Entity = LabelledSpan | tuple[int, int, str, str]


@dataclass(frozen=True)
class TemplateSettings:
    """Which templates there are.

    typed (bool): Whether labels count: copies of the entity's and the quotes' templates
        with the label, and labels in all others. If not, every label is the empty one.
    quote_limit (int): Q and Q2 are for quotations with e - s smaller than this.
    context (bool): Whether to add the templates that look at other entities, and those
        of `word_templates`.
    nested (bool): Whether to add the templates of spans within spans.
    """

    typed: bool = True
    quote_limit: int = 6
    context: bool = True
    nested: bool = True


class SegmentTemplates:
    """The templates of one segment."""

    def __init__(
        self,
        segment: CandidateSegment,
        document: DocumentNames | None,
        table: WordTable,
        settings: TemplateSettings,
    ):
        """Look at a segment.

        segment (CandidateSegment): The segment.
        document (Optional[DocumentNames]): Base-best entities of its whole document, if
            it has more than this segment.
        table (WordTable): Where words are looked up.
        settings (TemplateSettings): Which templates there are.
        """
        self.segment = segment
        self.words = SegmentWords(segment.words, table)
        self.settings = settings
        self.document = document if settings.context else None
        self._quotations = find_quotations(segment.words)
        self._own = document_names([segment], settings.typed) if self.document else ()

    def read(self, candidate: Candidate) -> tuple[Sequence[Entity], list[Relation]]:
        """The entities and relations of a candidate.

        candidate (Candidate): A candidate of the segment.
        RETURNS (tuple[Sequence[Entity], list[Relation]]): Both, distinct.
        """
        spans: Sequence[LabelledSpan] = candidate.spans
        if not self.settings.typed:
            spans = sorted({(start, end, "") for start, end, _ in spans})
        relations: list[Relation] = []
        entities: Sequence[Entity] = spans
        top = spans
        if is_nested(spans):
            forest = make_forest(spans)
            top = outermost(forest)
            if self.settings.nested:
                relations += nested_relations(forest)
                entities = [
                    (*span, role) if role else span
                    for span, role in zip(forest.spans, roles(forest), strict=True)
                ]
        if self.settings.context and len(spans) > 1:
            relations += [(neighbour_strings, *pair) for pair in neighbours(top)]
            if self.settings.typed:
                repeated = repeated_labels(self.segment.words, spans)
                relations += [(repeated_strings, *pair) for pair in repeated]
        if self._quotations:
            n_words = len(self.segment.words)
            typed, limit = self.settings.typed, self.settings.quote_limit
            relations += quote_relations(n_words, self._quotations, top, typed, limit)
        return entities, relations

    def relation_strings(self, relation: Relation) -> list[str]:
        """Print a relation.

        relation (Relation): The relation.
        RETURNS (list[str]): Its features.
        """
        function, *arguments = relation
        return function(self.words, *arguments)

    def label_strings(self, entity: Entity) -> list[str]:
        """Print what is no template of the paper: T=LABEL, and equal strings elsewhere.

        entity (Entity): An entity.
        RETURNS (list[str]): The strings.
        """
        start, end, label = entity[:3]
        typed = self.settings.typed
        strings = [feature("T", escape_label(label))] if typed else []
        if self.document:
            words = self.segment.words[start:end]
            strings += document_strings(words, label, self.document, self._own, typed)
        return strings

    def entity_strings(self, entity: Entity) -> list[str]:
        """Print the templates of an entity, without and with its label and role.

        entity (Entity): An entity.
        RETURNS (list[str]): The strings.
        """
        start, end, label, *role = entity
        plain = entity_strings(self.words, start, end)
        strings = plain + self.label_strings(entity)
        prefix = ""
        if self.settings.typed:
            prefix = f"{escape_label(label)}|"
            strings += [prefix + string for string in plain]
        if self.settings.context:
            around = WORD_TEMPLATES.strings(self.words, start, end)
            strings += [prefix + string for string in around]
        if role:
            strings += [f"{prefix}{role[0]}|{string}" for string in plain]
        return strings
