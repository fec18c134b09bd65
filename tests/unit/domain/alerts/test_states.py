"""An alert fires once and ends once, whatever turns are lost, repeated or late."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.domain.alerts.notices import (
    UPDATE_AFTER,
    FiringMember,
    NoticeKind,
    NotificationEpisode,
    NotificationRoute,
    Silence,
    notice_due,
    receivers_of,
)
from controlplane.domain.alerts.rules import AlertSeverity, parse_matcher
from controlplane.domain.rules.conditions import RuleProgress, RuleState, next_progress
from tests.properties import examples

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def walked(*seen: tuple[int, bool | None], lasts: int = 0, keeps: int = 0) -> RuleProgress | None:
    """What becomes of an alert that is seen so at those seconds."""
    standing: RuleProgress | None = None
    for second, holds in seen:
        standing = next_progress(
            standing,
            holds=holds,
            at=NOON + timedelta(seconds=second),
            lasts=timedelta(seconds=lasts),
            keeps=timedelta(seconds=keeps),
        )
    return standing


@pytest.mark.parametrize(
    ("seen", "lasts", "keeps", "state"),
    [
        ([(0, False)], 0, 0, None),
        ([(0, None)], 0, 0, None),
        ([(0, True)], 0, 0, RuleState.FIRING),
        ([(0, True)], 60, 0, RuleState.PENDING),
        ([(0, True), (59, True)], 60, 0, RuleState.PENDING),
        ([(0, True), (60, True)], 60, 0, RuleState.FIRING),
        ([(0, True), (30, False), (60, True)], 60, 0, RuleState.PENDING),
        ([(0, True), (30, False)], 60, 0, None),
        ([(0, True), (30, None), (60, True)], 60, 0, RuleState.FIRING),
        ([(0, True), (5, False)], 0, 0, RuleState.RESOLVED),
        ([(0, True), (5, None)], 0, 0, RuleState.FIRING),
        ([(0, True), (5, False)], 0, 60, RuleState.FIRING),
        ([(0, True), (5, False), (65, False)], 0, 60, RuleState.RESOLVED),
        ([(0, True), (5, False), (10, True), (65, False)], 0, 60, RuleState.FIRING),
        # Late: from before what is known.
        ([(0, True), (10, True), (5, False)], 0, 0, RuleState.FIRING),
    ],
)
def test_what_is_seen_leads_to_a_state(
    seen: list[tuple[int, bool | None]], lasts: int, keeps: int, state: RuleState | None
) -> None:
    standing = walked(*seen, lasts=lasts, keeps=keeps)
    assert (None if standing is None else standing.state) == state


@given(
    seen=st.lists(
        st.tuples(st.integers(0, 600), st.sampled_from([True, False, None])), max_size=30
    ),
    lasts=st.integers(0, 120),
    keeps=st.integers(0, 120),
)
def test_a_turn_that_comes_twice_changes_nothing(
    seen: list[tuple[int, bool | None]], lasts: int, keeps: int
) -> None:
    once = walked(*sorted(seen, key=lambda one: one[0]), lasts=lasts, keeps=keeps)
    if once is not None and once.state is not RuleState.RESOLVED:
        last = sorted(seen, key=lambda one: one[0])[-1]
        again = next_progress(
            once,
            holds=last[1],
            at=NOON + timedelta(seconds=last[0]),
            lasts=timedelta(seconds=lasts),
            keeps=timedelta(seconds=keeps),
        )
        assert again == once


@dataclass
class World:
    """A group of alerts as the services keep it, one turn after the other."""

    alerts: dict[int, RuleProgress] = field(default_factory=dict)
    notified: set[int] = field(default_factory=set)
    episode: NotificationEpisode = field(default_factory=NotificationEpisode)
    open: bool = False
    notices: list[tuple[NoticeKind, frozenset[int]]] = field(default_factory=list)

    def turn(self, holding: frozenset[int], silenced: frozenset[int], at: datetime) -> None:
        for key in {*self.alerts, *holding}:
            before = self.alerts.pop(key, None)
            after = next_progress(before, holds=key in holding, at=at, lasts=MINUTE, keeps=MINUTE)
            if after is not None and after.state is not RuleState.RESOLVED:
                self.alerts[key] = after
            else:
                self.notified.discard(key)
        firing = {k for k, one in self.alerts.items() if one.state is RuleState.FIRING}
        self.open = self.open or bool(firing)
        if not self.open:
            return
        members = [
            FiringMember(silenced=k in silenced, notified=k in self.notified) for k in firing
        ]
        kind = notice_due(self.episode, members, at=at)
        if kind is not None:
            audible = frozenset(firing - silenced)
            self.notices.append((kind, audible))
            self.notified |= audible
            self.episode = NotificationEpisode(notified_at=at)
        if not firing:
            self.open, self.episode = False, NotificationEpisode()


STEPS = st.lists(
    st.tuples(
        st.frozensets(st.integers(0, 5)),
        st.frozensets(st.integers(0, 5), max_size=2),
        st.integers(0, 600),
        st.integers(1, 3),
    ),
    max_size=40,
)


@settings(max_examples=examples(300))
@given(steps=STEPS)
def test_each_episode_is_told_of_once_and_ended_once(
    steps: list[tuple[frozenset[int], frozenset[int], int, int]],
) -> None:
    world, at = World(), NOON
    for holding, silenced, seconds, times in steps:
        at += timedelta(seconds=seconds)
        for _ in range(times):
            world.turn(holding, silenced, at)
    # Everything ends: nothing may be left untold.
    for _ in range(2):
        at += 2 * MINUTE
        world.turn(frozenset(), frozenset(), at)

    begun = False
    for kind, notified in world.notices:
        if kind is NoticeKind.FIRING:
            assert not begun
            assert notified
        elif kind is NoticeKind.RESOLVED:
            assert begun
        else:
            assert begun
            assert notified
        begun = kind is not NoticeKind.RESOLVED
    assert not begun
    assert not world.alerts


def test_a_thousand_cards_are_one_message() -> None:
    members = [FiringMember(silenced=False, notified=False)] * 1000
    assert notice_due(NotificationEpisode(), members, at=NOON) is NoticeKind.FIRING
    assert notice_due(NotificationEpisode(notified_at=NOON), members, at=NOON + MINUTE) is None


@pytest.mark.parametrize(
    ("members", "after", "repeat", "kind"),
    [
        ([], MINUTE, None, NoticeKind.RESOLVED),
        ([(False, True)], timedelta(days=1), None, None),
        ([(False, True)], timedelta(hours=1), timedelta(hours=1), NoticeKind.REPEAT),
        ([(False, True), (False, False)], UPDATE_AFTER, None, NoticeKind.MORE),
        ([(False, True), (False, False)], UPDATE_AFTER - MINUTE, None, None),
        ([(True, False)], timedelta(days=1), timedelta(hours=1), None),
    ],
)
def test_what_follows_the_first_message(
    members: list[tuple[bool, bool]],
    after: timedelta,
    repeat: timedelta | None,
    kind: NoticeKind | None,
) -> None:
    seen = [FiringMember(silenced=silenced, notified=notified) for silenced, notified in members]
    assert (
        notice_due(NotificationEpisode(notified_at=NOON, repeat=repeat), seen, at=NOON + after)
        is kind
    )


def test_nobody_hears_of_the_end_of_what_they_never_heard_of() -> None:
    assert notice_due(NotificationEpisode(), [], at=NOON) is None


def test_a_silence_ends_by_itself() -> None:
    silence = Silence(
        matchers=(parse_matcher("node=a-*"),), began_at=NOON, ends_at=NOON + timedelta(hours=1)
    )
    assert silence.covers({"node": "a-1"}, at=NOON)
    assert not silence.covers({"node": "b-1"}, at=NOON)
    assert not silence.covers({"node": "a-1"}, at=NOON + timedelta(hours=1))


def test_each_receiver_is_told_once_however_many_routes_lead_to_it() -> None:
    routes = [
        NotificationRoute(severity=AlertSeverity.INFO, matchers=(), receivers=frozenset({1, 2})),
        NotificationRoute(
            severity=AlertSeverity.CRITICAL, matchers=(), receivers=frozenset({2, 3})
        ),
        NotificationRoute(
            severity=AlertSeverity.INFO,
            matchers=(parse_matcher("cluster=west"),),
            receivers=frozenset({4}),
        ),
    ]
    assert receivers_of(routes, {"cluster": "east"}, severity=AlertSeverity.CRITICAL) == {1, 2, 3}
    assert receivers_of(routes, {"cluster": "west"}, severity=AlertSeverity.WARNING) == {1, 2, 4}
    assert receivers_of([], {}, severity=AlertSeverity.CRITICAL) == frozenset()
