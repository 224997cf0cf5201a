"""The schedule of the learning rate and the number of steps belong together."""

import warnings

import pytest
from nested_toy import toy_examples, untrained

SCHEDULE = {
    "@schedules": "warmup_linear.v1",
    "warmup_steps": 1,
    "total_steps": 20,
    "initial_rate": 0.001,
}


def initialize(max_steps, learn_rate):
    nlp = untrained()
    sgd = nlp.create_optimizer()
    config = nlp.config
    config["training"]["max_steps"] = max_steps
    config["training"]["optimizer"]["learn_rate"] = learn_rate
    nlp.config = config
    nlp.initialize(lambda: toy_examples(nlp), sgd=sgd)


def test_schedule_that_ends_before_training_is_warned_of():
    with pytest.warns(UserWarning, match=r"T160.*30 steps.*falls to 0 at step 20"):
        initialize(30, SCHEDULE)


@pytest.mark.parametrize(
    ("max_steps", "learn_rate"),
    [
        (20, SCHEDULE),
        (10, SCHEDULE),
        (0, SCHEDULE),  # no limit: `max_epochs` or `patience` ends it
        (30, 0.001),
        (30, {**SCHEDULE, "total_steps": "${training.max_steps}"}),
    ],
)
def test_schedule_that_fits_is_not_warned_of(max_steps, learn_rate):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        initialize(max_steps, learn_rate)
