"""How durations, figures and states read."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.template import TemplateSyntaxError
from django.utils import timezone, translation

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.jobs.lifecycle import AttemptState, JobState
from controlplane.domain.registry.versions import ModelState
from controlplane.domain.serving.lifecycle import DeploymentState, ReplicaState
from controlplane.web.state_badges import STATE_BADGES, StateBadge
from controlplane.web.templatetags import ninefold
from tests.cases import for_each_case


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59.4, "59 s"),
        (60, "1 min"),
        (90, "1 min 30 s"),
        (1505, "25 min"),
        (11_520, "3 h 12 min"),
        (180_000, "2 d 2 h"),
        (7_205, "2 h"),
        (172_900, "2 d"),
        (None, "–"),
    ],
)
def test_a_duration_has_two_units_at_most(seconds: float | None, text: str) -> None:
    assert ninefold.duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234567, "1,234,567"),
        (0.0123456, "0.01235"),
        (0.00002, "2e-05"),
        (1234.5, "1,234"),
        (0.0, "0"),
        (None, "–"),
        ("train", "train"),
    ],
)
def test_a_figure_has_sensible_precision(value: object, text: str) -> None:
    assert ninefold.number(value) == text


def test_an_instant_is_relative_with_the_absolute_one_beside_it() -> None:
    at = timezone.now() - timedelta(hours=3, minutes=12)
    shown = str(ninefold.ago(at))
    assert ">3 h 12 min ago<" in shown
    assert f'datetime="{at.isoformat()}"' in shown


def test_chinese_has_words_of_its_own() -> None:
    with translation.override("zh-hans"):
        assert ninefold.duration(11_520) == "3 小时 12 分"
        assert "运行中" in ninefold.state("running")


@pytest.mark.parametrize(
    "states", [JobState, AttemptState, ModelState, DeploymentState, ReplicaState, CardState]
)
def test_every_state_has_a_look(states: type[JobState]) -> None:
    assert {state.value for state in states} - set(STATE_BADGES) == set()


def test_an_icon_that_is_not_there_is_named() -> None:
    with pytest.raises(TemplateSyntaxError, match="no icon 'unicorn'"):
        ninefold.icon("unicorn")


@for_each_case("badge", STATE_BADGES.values())
def test_each_looks_icon_is_vendored(badge: StateBadge) -> None:
    assert "<svg" in ninefold.icon(badge.icon)
