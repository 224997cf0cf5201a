"""Every function under a width limit equals enumeration, and without one if it is wide."""

import itertools
import math
from collections import Counter, defaultdict

import pytest
import torch
from chain_oracle import (
    analyses,
    analysis_entropy,
    analysis_marginals,
    analysis_scores,
    labelled_analyses,
    labelled_scores,
)
from hypothesis import given
from hypothesis import strategies as st
from oracles import crosses, entity_set
from strategies import batches, few, random_batch, seeds

from spacy_treecrf.structure import (
    best_tree,
    entropy,
    k_best_entity_sets,
    k_best_trees,
    log_partition,
    log_probability,
    marginals,
    masked_log_partition,
    mbr_tree,
    observed_mask,
    sample,
)
from spacy_treecrf.structure.distribution import TreeDistribution
from spacy_treecrf.structure.spans import SpanIndex

DTYPES = [torch.float32, torch.float64]
# Segments within the limit and beyond it side by side, for any limit.
RAGGED = [6, 2, 5, 1, 3, 6]
every_width = pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 6])
every_dtype = pytest.mark.parametrize("dtype", DTYPES)


def atol(dtype):
    return 2e-5 if dtype == torch.float32 else 1e-9


def ragged(n_labels=2, seed=0, scale=1.5, dtype=torch.float64, padding=math.nan):
    return random_batch(RAGGED, n_labels, seed, scale, padding=padding, dtype=dtype)


# The enumeration itself.


def test_width_limit_analyses_are_counted():
    catalan = [1, 1, 2, 5, 14, 42]
    for length in range(1, 7):
        assert len(analyses(length, length)) == catalan[length - 1]
        assert len(analyses(length, 1)) == 1
    # Stretches 1+1+1+1, three ways of 2+1+1, 2+2.
    assert len(analyses(4, 2)) == 5
    # 3+1 and 1+3, of two trees each, on top.
    assert len(analyses(4, 3)) == 9


# Against enumeration.


@every_width
@every_dtype
def test_width_limit_log_partition_equals_enumeration(width, dtype):
    batch = ragged(dtype=dtype)
    found = log_partition(batch.potentials, RAGGED, max_width=width)
    assert found.dtype == dtype
    for value, (length, potentials) in zip(found.tolist(), batch, strict=True):
        expected = analysis_scores(potentials, length, width).logsumexp(0).item()
        assert value == pytest.approx(expected, abs=10 * atol(dtype))


@every_width
@every_dtype
@pytest.mark.parametrize("lengths", [RAGGED, [6, 6]])
def test_width_limit_marginals_equal_enumeration(width, dtype, lengths):
    batch = random_batch(lengths, 2, scale=1.5, dtype=dtype)
    found = marginals(batch.potentials, lengths, max_width=width)
    for number, (length, potentials) in enumerate(batch):
        expected = analysis_marginals(potentials, length, width)
        torch.testing.assert_close(
            found[number].double(), expected, rtol=0, atol=atol(dtype)
        )


@every_width
@every_dtype
def test_width_limit_entropy_equals_enumeration(width, dtype):
    lengths = [4, 2, 3]
    batch = random_batch(lengths, 2, scale=1.5, dtype=dtype)
    found = entropy(batch.potentials, lengths, max_width=width)
    for value, (length, potentials) in zip(found.tolist(), batch, strict=True):
        expected = analysis_entropy(potentials, length, width)
        assert value == pytest.approx(expected, abs=10 * atol(dtype))


@every_width
@every_dtype
def test_width_limit_entropy_of_six_tokens_equals_enumeration(width, dtype):
    batch = random_batch([6, 5], 1, scale=2.0, dtype=dtype)
    found = entropy(batch.potentials, [6, 5], max_width=width)
    for value, (length, potentials) in zip(found.tolist(), batch, strict=True):
        expected = analysis_entropy(potentials, length, width)
        assert value == pytest.approx(expected, abs=10 * atol(dtype))


@every_width
@given(seeds)
@few
def test_width_limit_best_tree_equals_enumeration(width, seed):
    batch = ragged(seed=seed)
    for tree, (length, potentials) in zip(
        best_tree(batch.potentials, RAGGED, max_width=width), batch, strict=True
    ):
        # Labels are independent given the spans.
        scores = potentials.amax(-1)
        spans = max(
            analyses(length, width), key=lambda each: sum(scores[s] for s in each)
        )
        assert {node[:2] for node in tree} == set(spans)
        assert all(node[2] == potentials[node[:2]].argmax() for node in tree)
        assert tree == sorted(tree, key=lambda node: (node[0], -node[1]))


@every_width
@pytest.mark.parametrize("threshold", [None, 0.3])
def test_width_limit_mbr_tree_equals_enumeration(width, threshold):
    batch = ragged(n_labels=3, padding=0.0)
    trees = mbr_tree(batch.potentials, RAGGED, threshold, max_width=width)
    for tree, (length, potentials) in zip(trees, batch, strict=True):
        chances = analysis_marginals(potentials, length, width)
        if threshold is None:
            gains = chances.amax(-1)
        else:
            gains = (chances[..., :2].amax(-1) - threshold).clamp(min=0.0)
        best = max(
            sum(gains[span].item() for span in spans)
            for spans in analyses(length, width)
        )
        own = sum(gains[node[:2]].item() for node in tree)
        assert own == pytest.approx(best)
        assert {node[:2] for node in tree} in map(set, analyses(length, width))


@every_width
@every_dtype
@pytest.mark.parametrize("k", [1, 3, 50])
def test_width_limit_k_best_trees_equal_the_sorted_enumeration(width, dtype, k):
    lengths = [4, 1, 3]
    batch = random_batch(lengths, 2, dtype=dtype)
    found = k_best_trees(batch.potentials, lengths, k, max_width=width)
    for trees, (length, potentials) in zip(found, batch, strict=True):
        every = labelled_analyses(length, width, 2)
        scores = labelled_scores(potentials, every).sort(descending=True).values
        assert [score for score, _ in trees] == pytest.approx(scores[:k].tolist())
        assert len({tuple(tree) for _, tree in trees}) == len(trees)
        for score, tree in trees:
            assert labelled_scores(potentials, [tree]).item() == pytest.approx(score)
            assert tree == sorted(tree, key=lambda node: (node[0], -node[1]))


@every_width
def test_width_limit_k_best_trees_of_six_tokens_equal_enumeration(width):
    batch = random_batch([6], 1, scale=2.0)
    found = k_best_trees(batch.potentials, [6], 100, max_width=width)[0]
    scores = analysis_scores(batch.potentials[0], 6, width).sort(descending=True)
    assert [score for score, _ in found] == pytest.approx(scores.values[:100].tolist())


@every_width
def test_width_limit_samples_approach_the_marginals(width):
    lengths, k = [5, 2, 4], 3000
    batch = random_batch(lengths, 2, scale=1.5)
    drawn = sample(batch.potentials, lengths, k, 0, max_width=width)
    for trees, (length, potentials) in zip(drawn, batch, strict=True):
        chances = analysis_marginals(potentials, length, width)
        counts = Counter(node for tree in trees for node in tree)
        for node in itertools.product(range(length), range(1, length + 1), range(2)):
            chance = chances[node].item()
            slack = 5 * (chance * (1 - chance) / k) ** 0.5 + 1e-9
            assert counts[node] / k == pytest.approx(chance, abs=slack)
        assert {frozenset(node[:2] for node in tree) for tree in trees} <= set(
            map(frozenset, analyses(length, width))
        )


@every_width
def test_width_limit_samples_are_analyses_as_often_as_their_probability(width):
    k = 4000
    batch = random_batch([4], 1)
    drawn = sample(batch.potentials, [4], k, 1, max_width=width)[0]
    counts = Counter(frozenset(node[:2] for node in tree) for tree in drawn)
    chances = analysis_scores(batch.potentials[0], 4, width).softmax(0).tolist()
    for spans, chance in zip(analyses(4, width), chances, strict=True):
        slack = 5 * (chance * (1 - chance) / k) ** 0.5 + 1e-9
        assert counts[frozenset(spans)] / k == pytest.approx(chance, abs=slack)


@every_width
@given(seeds)
@few
def test_width_limit_entity_sets_have_exact_log_probabilities(width, seed):
    lengths = [4, 2, 3]
    batch = random_batch(lengths, 3 if width < 3 else 2, seed=seed)
    n_entities = batch.n_labels - 1
    found = k_best_entity_sets(
        batch.potentials, lengths, 20, n_entities, max_width=width
    )
    for candidates, (length, potentials) in zip(found, batch, strict=True):
        trees = labelled_analyses(length, width, batch.n_labels)
        chances = labelled_scores(potentials, trees).softmax(0).tolist()
        by_set = defaultdict(float)
        for tree, chance in zip(trees, chances, strict=True):
            by_set[frozenset(entity_set(tree, n_entities))] += chance
        assert candidates
        for log_prob, entities in candidates:
            expected = math.log(by_set[frozenset(entities)])
            assert log_prob == pytest.approx(expected, abs=1e-8)


# Masks: the rule for borders.


def entity_choices(length, max_width, n_entity_labels=1):
    """Sets of up to three entities within the limit that do not cross."""
    spans = [
        (start, end, label)
        for start in range(length)
        for end in range(start + 1, min(length, start + max_width) + 1)
        for label in range(n_entity_labels)
    ]
    for size in range(4):
        for chosen in itertools.combinations(spans, size):
            if not any(
                crosses(a, b) or a[:2] == b[:2]
                for a, b in itertools.combinations(chosen, 2)
            ):
                yield chosen


@pytest.mark.parametrize("length", [3, 4])
@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_width_limit_masks_allow_exactly_the_analyses_with_the_entities(length, width):
    batch = random_batch([length], 2)
    trees = labelled_analyses(length, width, 2)
    scores = labelled_scores(batch.potentials[0], trees)
    sets = [frozenset(entity_set(tree, 1)) for tree in trees]
    for entities in entity_choices(length, width):
        allowed = observed_mask(entities, length, 1, 2, max_width=width)[None]
        found = masked_log_partition(
            batch.potentials, allowed, [length], max_width=width
        )
        own = torch.tensor([each == frozenset(entities) for each in sets])
        expected = scores[own].logsumexp(0).item()
        assert found.item() == pytest.approx(expected, abs=1e-9), entities
        # The mask need not know of the limit where no entity exceeds it.
        plain = observed_mask(entities, length, 1, 2)[None]
        again = masked_log_partition(batch.potentials, plain, [length], max_width=width)
        assert again.item() == pytest.approx(expected, abs=1e-9)


def allowed_sums(potentials, length, width, entities):
    """Log-sum over the analyses whose entities are the given ones: one label, one latent.

    By spans: an entity is a node with its label, every other node is latent.
    """
    values = potentials.double()
    scores = []
    for spans in analyses(length, width):
        if set(entities) <= set(spans):
            scores.append(
                sum(values[span][0 if span in entities else 1] for span in spans)
            )
    return torch.stack(scores).logsumexp(0).item()


# Entities that begin the segment, that end it, and in between.
ENTITIES = [
    [(0, 2)],
    [(4, 6)],
    [(0, 2), (4, 6)],
    [(2, 4)],
    [(0, 3), (0, 2), (3, 6)],
    [(1, 4), (2, 3)],
    [(0, 1), (5, 6)],
    [],
]


@pytest.mark.parametrize(
    ("width", "entities"),
    [
        (width, entities)
        for width in range(1, 7)
        for entities in ENTITIES
        if all(end - start <= width for start, end in entities)
    ],
)
@every_dtype
def test_width_limit_masked_sums_of_six_tokens_equal_enumeration(
    entities, width, dtype
):
    batch = random_batch([6, 2], 2, scale=2.0, dtype=dtype)
    allowed = torch.zeros(batch.potentials.shape, dtype=torch.bool)
    own = [(*span, 0) for span in entities]
    allowed[0] = observed_mask(own, 6, 1, 2, max_width=width)
    allowed[1, :3, :3] = observed_mask([(0, 1, 0)], 2, 1, 2)
    found = masked_log_partition(batch.potentials, allowed, [6, 2], max_width=width)
    expected = allowed_sums(batch.potentials[0], 6, width, entities)
    assert found[0].item() == pytest.approx(expected, abs=10 * atol(dtype))
    log_p = log_probability(batch.potentials, allowed, [6, 2], max_width=width)
    log_z = analysis_scores(batch.potentials[0], 6, width).logsumexp(0).item()
    assert log_p[0].item() == pytest.approx(expected - log_z, abs=10 * atol(dtype))


@pytest.mark.parametrize(
    ("start", "end"), [(0, 3), (3, 6), (1, 4)], ids=["begins", "ends", "inside"]
)
def test_width_limit_an_observed_entity_is_in_every_allowed_analysis(start, end):
    batch = random_batch([6], 2)
    potentials = batch.potentials.clone()
    # Without the rule a border inside the entity would be worth much.
    for inner in range(start + 1, end):
        potentials[0, start, inner] += 50.0
        potentials[0, inner, end] += 50.0
    potentials.requires_grad_()
    allowed = observed_mask([(start, end, 0)], 6, 1, 2, max_width=3)[None]
    masked_log_partition(potentials, allowed, [6], max_width=3).sum().backward()
    assert potentials.grad[0, start, end, 0].item() == pytest.approx(1.0)
    assert potentials.grad[..., 0].sum().item() == pytest.approx(1.0)


def test_width_limit_an_entity_beyond_it_rejects_what_crosses_it_alone():
    # The entity [1, 5) is wider than 3: no node, its borders are free, what crosses it is
    # rejected; the entity inside it stays.
    batch = random_batch([6], 2)
    allowed = observed_mask([(1, 5, 0), (2, 4, 0)], 6, 1, 2, max_width=3)[None]
    found = masked_log_partition(batch.potentials, allowed, [6], max_width=3).item()
    values = batch.potentials[0]
    scores = [
        sum(values[span][0 if span == (2, 4) else 1] for span in spans)
        for spans in analyses(6, 3)
        if (2, 4) in spans and not any(crosses(span, (1, 5)) for span in spans)
    ]
    assert len(scores) > 1
    assert found == pytest.approx(torch.stack(scores).logsumexp(0).item())


@pytest.mark.parametrize("width", [2, 3, 4, 5, 6])
def test_width_limit_smoothing_rejects_a_border_by_epsilon(width):
    # A node that crosses the entity, or a border inside it, costs log epsilon.
    epsilon, entity = 0.1, (2, 4)
    batch = random_batch([6], 2)
    allowed = observed_mask([(*entity, 0)], 6, 1, 2, max_width=width)[None]
    found = masked_log_partition(
        batch.potentials, allowed, [6], epsilon, max_width=width
    ).item()
    smooth = torch.where(allowed[0], 0.0, math.log(epsilon)) + batch.potentials[0]
    sums = []
    for spans in analyses(6, width):
        score = sum(smooth[span].logsumexp(0) for span in spans)
        if width < 6:
            roots = [
                span
                for span in spans
                if not any(
                    other != span and other[0] <= span[0] and span[1] <= other[1]
                    for other in spans
                )
            ]
            score += math.log(epsilon) * sum(2 < end < 4 for _, end in roots)
        sums.append(score)
    assert found == pytest.approx(torch.stack(sums).logsumexp(0).item())
    assert found <= log_partition(batch.potentials, [6], max_width=width).item()


# Gradients.


@every_width
def test_width_limit_gradients_equal_finite_differences(width):
    lengths, step = [5, 2, 3], 1e-5
    batch = random_batch(lengths, 2)
    allowed = torch.zeros(batch.potentials.shape, dtype=torch.bool)
    for number, length in enumerate(lengths):
        entities = [(0, 1, 0), (length - min(width, 2), length, 0)]
        allowed[number, : length + 1, : length + 1] = observed_mask(
            entities, length, 1, 2, max_width=width
        )

    def value(potentials):
        return log_probability(potentials, allowed, lengths, max_width=width).sum()

    potentials = batch.potentials.clone().requires_grad_()
    value(potentials).backward()
    assert potentials.grad.isfinite().all()
    for number, length in enumerate(lengths):
        for start, end in itertools.combinations(range(length + 1), 2):
            for label in range(2):
                cell = (number, start, end, label)
                slopes = []
                for sign in (1, -1):
                    moved = batch.potentials.clone()
                    moved[cell] += sign * step
                    slopes.append(value(moved).item())
                slope = (slopes[0] - slopes[1]) / (2 * step)
                assert potentials.grad[cell].item() == pytest.approx(slope, abs=1e-7)


@every_dtype
@pytest.mark.parametrize("lengths", [[70, 5, 33], [50, 50]])
@pytest.mark.parametrize("width", [1, 5, 16, 17, 40])
def test_width_limit_gradients_are_the_marginals(lengths, width, dtype):
    batch = random_batch(lengths, 3, dtype=dtype)
    potentials = batch.potentials.clone().requires_grad_()
    log_partition(potentials, lengths, max_width=width).sum().backward()
    expected = marginals(batch.potentials, lengths, max_width=width)
    torch.testing.assert_close(potentials.grad, expected, rtol=0, atol=atol(dtype))


# Without a limit, and of one width with another.

FUNCTIONS = {
    "log_partition": log_partition,
    "marginals": marginals,
    "best_tree": best_tree,
    "mbr_tree": mbr_tree,
    "entropy": entropy,
    "k_best_trees": lambda *args, **limit: k_best_trees(*args, 5, **limit),
    "sample": lambda *args, **limit: sample(*args, 5, 0, **limit),
    "entity_sets": lambda *args, **limit: k_best_entity_sets(*args, 5, 2, **limit),
}
every_function = pytest.mark.parametrize(
    "function", FUNCTIONS.values(), ids=FUNCTIONS.keys()
)


def same(found, expected, tolerance=1e-9):
    if isinstance(found, torch.Tensor):
        torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)
    else:
        assert found == expected


@every_function
@pytest.mark.parametrize("width", [12, 13, 100])
def test_width_limit_of_the_longest_segment_changes_nothing(function, width):
    lengths = [12, 1, 7, 12]
    batch = random_batch(lengths, 3)
    expected = function(batch.potentials, lengths)
    same(function(batch.potentials, lengths, max_width=width), expected)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "sample"])
@pytest.mark.parametrize("width", [1, 3, 7, 16, 20])
@pytest.mark.parametrize("lengths", [[40, 1, 7, 33, 40, 16, 17], [40, 40], [7, 40]])
def test_width_limit_batch_equals_one_by_one(name, width, lengths):
    function = FUNCTIONS[name]
    batch = random_batch(lengths, 3, padding=math.nan)
    together = function(batch.potentials, lengths, max_width=width)
    for number, length in enumerate(lengths):
        own = batch.potentials[number : number + 1, : length + 1, : length + 1]
        alone = function(own, [length], max_width=width)[0]
        part = together[number]
        if isinstance(part, torch.Tensor) and part.dim():
            part = part[: length + 1, : length + 1]
        if name == "entity_sets":
            assert [log_p for log_p, _ in part] == pytest.approx(
                [log_p for log_p, _ in alone]
            )
            continue
        same(part, alone)


@every_function
@pytest.mark.parametrize("width", [0, -3])
def test_width_limit_below_1_is_refused(function, width):
    with pytest.raises(ValueError, match=f"max_width of at least 1, received {width}"):
        function(torch.zeros(1, 4, 4, 3), [3], max_width=width)


def test_width_limit_log_partition_of_a_long_segment_equals_a_step_a_token():
    # Longer than several blocks, by the recursion of the definition.
    length, width = 100, 20
    batch = random_batch([length], 2)
    beta = {
        (start, end): log_partition(
            batch.potentials[:, start : end + 1, start : end + 1], [end - start]
        ).item()
        for start in range(length)
        for end in range(start + 1, min(length, start + width) + 1)
    }
    alpha = torch.zeros(length + 1, dtype=torch.float64)
    for end in range(1, length + 1):
        first = max(0, end - width)
        alpha[end] = torch.stack(
            [alpha[start] + beta[start, end] for start in range(first, end)]
        ).logsumexp(0)
    found = log_partition(batch.potentials, [length], max_width=width)
    assert found.item() == pytest.approx(alpha[-1].item())


@every_function
@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 32])
@pytest.mark.parametrize("width", [1, 6, 9])
def test_width_limit_size_of_blocks_changes_nothing(function, size, width, monkeypatch):
    lengths = [40, 9, 33, 40]
    batch = random_batch(lengths, 3)
    expected = function(batch.potentials, lengths, max_width=width)
    monkeypatch.setattr("spacy_treecrf.structure.chain.MIN_BLOCK", size)
    monkeypatch.setattr("spacy_treecrf.structure.chain.MAX_BLOCK", size)
    found = function(batch.potentials, lengths, max_width=width)
    if function is FUNCTIONS["entity_sets"]:
        for one, other in zip(found, expected, strict=True):
            assert [log_prob for log_prob, _ in one] == pytest.approx(
                [log_prob for log_prob, _ in other]
            )
        return
    same(found, expected)


def test_width_limit_distribution_of_some_rows_is_that_of_all():
    index = SpanIndex.build([20, 4], max_width=6)
    potentials = index.pack(random_batch([20, 4], 3).potentials)
    rows = torch.tensor([0, 7, 50, 3])
    fresh, whole = (TreeDistribution(potentials, index) for _ in range(2))
    torch.testing.assert_close(fresh.marginals_at(rows), whole.marginals[:, rows])
    torch.testing.assert_close(whole.marginals_at(rows), whole.marginals[:, rows])


@given(batches(dtypes=DTYPES), st.integers(1, 6))
@few
def test_width_limit_marginals_of_a_tree_cover_its_stretches(batch, width):
    """2n - 1 nodes a tree, less one for each border between stretches."""
    found = marginals(batch.potentials, batch.lengths, max_width=width)
    for number, (length, _) in enumerate(batch):
        for token in range(length):
            leaf = found[number, token, token + 1].sum().item()
            assert leaf == pytest.approx(1.0, abs=1e-5)
        assert found[number].max() <= 1.0
        assert found[number].min() >= 0.0


# Numbers.


@pytest.mark.parametrize("scale", [1.0, 100.0, 1e4])
def test_width_limit_of_long_segments_is_right_for_scores_of_any_size(scale):
    lengths = [600, 30]
    batch = random_batch(lengths, 3, scale=scale, dtype=torch.float32)
    found = marginals(batch.potentials, lengths, max_width=8)
    expected = marginals(batch.potentials.double(), lengths, max_width=8)
    assert found.max() <= 1.0
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=5e-6)
    torch.testing.assert_close(
        entropy(batch.potentials, lengths, max_width=8).double(),
        entropy(batch.potentials.double(), lengths, max_width=8),
        rtol=0,
        atol=5e-3,
    )


def test_width_limit_hard_masks_keep_gradients_finite():
    batch = random_batch([60, 9], 3, dtype=torch.float32)
    potentials = batch.potentials.clone()
    potentials[:, 3:9, :, :2] = -math.inf
    potentials.requires_grad_()
    log_partition(potentials, [60, 9], max_width=7).sum().backward()
    assert potentials.grad.isfinite().all()


def test_width_limit_refuses_masks_that_allow_nothing():
    # Both may be observed, but not in one analysis: no border is left within [0, 6).
    entities = [(0, 3, 0), (2, 5, 0), (4, 6, 0)]
    allowed = observed_mask(entities, 6, 1, 2, max_width=3)[None]
    with pytest.raises(ValueError, match="allow none for segments"):
        masked_log_partition(torch.zeros(1, 7, 7, 2), allowed, [6], max_width=3)
