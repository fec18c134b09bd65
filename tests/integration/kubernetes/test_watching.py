"""Whatever a server does to those who watch it, nothing that happens there is missed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from controlplane.adapters.clusters.kubernetes.api import KubernetesApi
from controlplane.adapters.clusters.kubernetes.watch_streams import WatchEndReason
from controlplane.adapters.clusters.kubernetes.watcher import (
    ReflectorStatus,
    Watcher,
    WatchTimeouts,
)
from tests.integration.kubernetes import scripted_api as players
from tests.integration.kubernetes.scripted_api import NODES, OTHERS, OURS, VERSION, Player

pytestmark = pytest.mark.slow

WITHIN = 120.0
QUICK = WatchTimeouts(answer=0.5, idle=0.6, heartbeat=0.4, pause=0.05)


class Watched:
    """A watcher at work, and what it told."""

    def __init__(self, api: KubernetesApi, *, timeouts: WatchTimeouts) -> None:
        self.watcher = Watcher(api, installation="east", timeouts=timeouts)
        self.launches: list[frozenset[str]] = []
        self.nodes = 0
        self.alive = 0
        self.refuses = False
        self.stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        self.watcher.watch(
            launches_changed=self._launches_changed,
            nodes_changed=self._nodes_changed,
            alive=self._alive,
            stopping=self.stopping,
        )

    def _launches_changed(self, names: frozenset[str]) -> None:
        if self.refuses:
            raise RuntimeError("the database is away")
        self.launches.append(names)

    def _nodes_changed(self) -> None:
        self.nodes += 1

    def _alive(self) -> None:
        self.alive += 1

    @property
    def names(self) -> frozenset[str]:
        return frozenset().union(*self.launches)

    def of(self, resource: str) -> ReflectorStatus:
        return next(one for one in self.watcher.state() if one.resource == resource)

    @property
    def ends(self) -> set[WatchEndReason]:
        """Of the watch of our pods, those that nobody asked for."""
        return set(self.of("our pods").ends)

    def stop(self) -> float:
        """Seconds until it had stopped."""
        began = time.monotonic()
        self.stopping.set()
        self._thread.join(WITHIN)
        assert not self._thread.is_alive()
        return time.monotonic() - began


Watch = Callable[..., Watched]


@pytest.fixture
def stage() -> Iterator[tuple[Player, Watch]]:
    started: list[Watched] = []
    with players.played() as (player, access):

        def watch(timeouts: WatchTimeouts = QUICK) -> Watched:
            started.append(Watched(KubernetesApi(access), timeouts=timeouts))
            return started[-1]

        try:
            yield player, watch
        finally:
            for one in started:
                one.stop()


def until(condition: Callable[[], bool], *, what: str, within: float = WITHIN) -> None:
    limit = time.monotonic() + within
    while not condition():
        assert time.monotonic() < limit, f"never: {what}"
        time.sleep(0.01)


def watching(player: Player, what: str = OURS, *, times: int = 1) -> None:
    """Wait until a watch has been asked for so many times."""
    until(lambda: player.count(what, watches=True) >= times, what=f"{times} watches of {what}")


def test_a_first_listing_tells_every_name_and_an_event_its_own(stage: tuple[Player, Watch]) -> None:
    player, watch = stage
    player.page(2)
    for number in range(5):
        player.pod(f"attempt-{number}")
    watched = watch()
    until(lambda: len(watched.names) == 5, what="five names")
    watching(player)
    assert player.count(OURS, watches=False) == 3
    watched.launches.clear()

    player.pod("attempt-9")
    until(lambda: watched.names == {"attempt-9"}, what="the new name", within=1.0)


def test_many_events_are_told_together_and_none_is_lost(stage: tuple[Player, Watch]) -> None:
    player, watch = stage
    watched = watch()
    watching(player)
    for number in range(400):
        player.pod(f"attempt-{number % 200}", name=f"pod-{number}")
    until(lambda: len(watched.names) == 200, what="every name")
    # The first 200 events hold every name already; the others may still be under way.
    until(lambda: watched.of("our pods").events == 400, what="every event")
    assert len(watched.launches) < 20


def test_after_an_end_in_good_order_it_watches_on_from_the_last_version(
    stage: tuple[Player, Watch],
) -> None:
    player, watch = stage
    watched = watch()
    watching(player)
    version = player.bookmark(OURS)
    until(lambda: watched.of("our pods").version == str(version), what="the bookmark")
    player.end(OURS)
    watching(player, times=2)
    assert player.last(OURS, watches=True).query["resourceVersion"] == str(version)
    player.pod("attempt-1")
    until(lambda: "attempt-1" in watched.names, what="the name")
    assert player.count(OURS, watches=False) == 1


@pytest.mark.parametrize(
    ("trick", "end"),
    [
        (players.ends_at_once, WatchEndReason.EARLY),
        (players.answers_nothing, WatchEndReason.HALF_OPEN),
        (players.says_nothing, WatchEndReason.IDLE),
        (players.is_cut_within_a_line, WatchEndReason.BROKEN),
        (players.ends_within_a_line, WatchEndReason.BROKEN),
        (players.is_busy, WatchEndReason.BUSY),
        (players.fails, WatchEndReason.BUSY),
    ],
)
def test_what_happens_while_a_connection_fails_is_told_without_listing_again(
    stage: tuple[Player, Watch], trick: players.Trick, end: WatchEndReason
) -> None:
    player, watch = stage
    player.trick(OURS, trick)
    watched = watch()
    watching(player)
    player.pod("attempt-1")
    until(lambda: "attempt-1" in watched.names, what="the name")
    assert end in watched.ends
    assert player.count(OURS, watches=False) == 1


@pytest.mark.parametrize(
    ("trick", "end"),
    [
        (players.has_forgotten_the_version, WatchEndReason.EXPIRED),
        (players.forgets_the_version, WatchEndReason.EXPIRED),
        (players.talks_nonsense, WatchEndReason.GARBLED),
        (players.forbids, WatchEndReason.REFUSED),
    ],
)
def test_what_a_version_no_longer_tells_is_listed_and_what_is_gone_is_told_too(
    stage: tuple[Player, Watch], trick: players.Trick, end: WatchEndReason
) -> None:
    player, watch = stage
    player.pod("attempt-1")
    watched = watch()
    watching(player)
    until(lambda: watched.names == {"attempt-1"}, what="the first name")
    watched.launches.clear()
    player.delete(OURS, "attempt-1-main-0", announced=False)
    player.trick(OURS, trick)
    player.end(OURS)
    until(lambda: player.count(OURS, watches=False) == 2, what="a second listing")
    until(lambda: watched.names == {"attempt-1"}, what="the name that is gone")
    assert end in watched.ends


def test_a_listing_whose_next_page_has_expired_begins_anew(stage: tuple[Player, Watch]) -> None:
    player, watch = stage
    player.page(2)
    for number in range(5):
        player.pod(f"attempt-{number}")
    player.trick(
        OURS, lambda handler: handler.list(player.last(OURS, watches=False)), watches=False
    )
    player.trick(OURS, players.has_forgotten_the_version, watches=False)
    watched = watch()
    until(lambda: len(watched.names) == 5, what="every name")
    assert player.count(OURS, watches=False) == 5
    assert len(watched.launches) == 1


def test_a_server_that_is_down_at_first_is_tried_until_it_answers(
    stage: tuple[Player, Watch],
) -> None:
    player, watch = stage
    player.pod("attempt-1")
    player.trick(OURS, players.is_busy, players.answers_nothing, players.fails, watches=False)
    watched = watch()
    until(lambda: watched.names == {"attempt-1"}, what="the name")
    assert {WatchEndReason.BUSY, WatchEndReason.HALF_OPEN} <= watched.ends
    assert watched.of("our pods").errors == 3
    assert watched.of("our pods").last_error == ""


def test_everything_is_listed_again_from_time_to_time(stage: tuple[Player, Watch]) -> None:
    player, watch = stage
    player.pod("attempt-1")
    watched = watch(WatchTimeouts(listing=1.0))
    watching(player)
    player.delete(OURS, "attempt-1-main-0", announced=False)
    until(lambda: len(watched.launches) == 2, what="the name again")
    assert watched.names == {"attempt-1"}


def test_a_heartbeat_of_a_node_is_no_news_and_a_lost_card_is(stage: tuple[Player, Watch]) -> None:
    player, watch = stage

    def node(*, beat: int, cards: int) -> None:
        conditions = [{"type": "Ready", "status": "True", "lastHeartbeatTime": beat}]
        allocatable = {"nvidia.com/gpu": str(cards)}
        player.put(NODES, "n1", status={"conditions": conditions, "allocatable": allocatable})

    node(beat=1, cards=8)
    watched = watch(WatchTimeouts())
    watching(player, NODES)
    watching(player, OTHERS)
    until(lambda: watched.nodes > 0, what="the first listing")
    # Two listings mark nodes, and they may be told apart.
    before = watched.nodes
    node(beat=2, cards=8)
    until(lambda: watched.of("nodes").events == 1, what="the heartbeat")
    node(beat=3, cards=7)
    until(lambda: watched.nodes > before, what="the lost card", within=1.0)
    assert watched.nodes <= before + 2
    count = watched.nodes
    player.delete(NODES, "n1")
    until(lambda: watched.nodes == count + 1, what="the lost node", within=1.0)


def test_pods_of_others_are_news_when_they_get_a_node_or_give_it_back(
    stage: tuple[Player, Watch],
) -> None:
    player, watch = stage
    watched = watch(WatchTimeouts())
    watching(player, OTHERS)
    until(lambda: watched.nodes == 1, what="the first listing")
    query = player.last(OTHERS, watches=True).query
    assert query["labelSelector"] == "ninefold.io/installation!=east"
    assert "spec.nodeName!=" in query["fieldSelector"]

    player.put(OTHERS, "theirs")
    until(lambda: watched.nodes == 2, what="a pod that got a node")
    player.put(OTHERS, "theirs")
    until(lambda: watched.of("others' pods").events == 2, what="the change")
    player.delete(OTHERS, "theirs")
    until(lambda: watched.nodes == 3, what="a pod that gave its node back")
    assert watched.names == frozenset()


def test_a_quiet_server_is_asked_for_a_sign_of_life(stage: tuple[Player, Watch]) -> None:
    player, watch = stage
    watched = watch(WatchTimeouts(heartbeat=0.3))
    until(lambda: player.count(VERSION, watches=False) >= 2, what="two signs of life")
    assert watched.alive >= 1
    assert player.count(OURS, watches=True) == 1


def test_when_the_network_returns_watches_go_on_over_new_connections(
    stage: tuple[Player, Watch],
) -> None:
    player, watch = stage
    player.trick(OURS, players.says_nothing)
    player.trick(VERSION, players.answers_nothing, watches=False)
    watched = watch(WatchTimeouts(heartbeat=0.3, answer=0.5, idle=60.0))
    watching(player)
    player.pod("attempt-1")
    until(lambda: "attempt-1" in watched.names, what="what the dead connection did not tell")
    assert watched.ends == set()


@pytest.mark.parametrize("trick", [players.says_nothing, players.answers_nothing])
def test_it_stops_within_a_second_however_silent_the_server_is(
    stage: tuple[Player, Watch], trick: players.Trick
) -> None:
    player, watch = stage
    for what in (OURS, NODES, OTHERS):
        player.trick(what, trick)
    watched = watch(WatchTimeouts(answer=3.0))
    for what in (OURS, NODES, OTHERS):
        watching(player, what)
    assert watched.stop() < 1.0


def test_a_silent_watch_is_ended_and_not_left_behind(stage: tuple[Player, Watch]) -> None:
    player, watch = stage
    until(lambda: not at_work(), what="the threads of earlier tests end")
    watched = watch(WatchTimeouts())
    for what in (OURS, NODES, OTHERS):
        watching(player, what)
    until(
        lambda: all(one.last_seen_at is not None for one in watched.watcher.state()), what="answers"
    )
    assert len(at_work()) == 4
    watched.stop()
    assert at_work() == []


def at_work() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "watch"]


def test_news_that_were_not_taken_are_told_again(
    stage: tuple[Player, Watch], caplog: pytest.LogCaptureFixture
) -> None:
    player, watch = stage
    watched = watch()
    watching(player)
    watched.refuses = True
    player.pod("attempt-1")
    until(lambda: "told again" in caplog.text, what="a refusal")
    watched.refuses = False
    until(lambda: watched.names == {"attempt-1"}, what="the name")


def test_two_installations_on_one_cluster_ask_for_their_own_pods_only(
    stage: tuple[Player, Watch],
) -> None:
    player, watch = stage
    watch()
    watching(player)
    selector = player.last(OURS, watches=True).query["labelSelector"]
    assert selector == "app.kubernetes.io/managed-by=ninefold,ninefold.io/installation=east"
