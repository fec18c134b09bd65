"""Which bytes go by rule, and which never do.

::

    items ──▶ a rule picks candidates ──▶ minus what is held, pinned, or needed by what stays ──▶ removals

The planner sees everything that a rule could remove at once, with what holds each of it, and gives back
what goes and by which rule. It reads no clock and touches nothing, so that the same call is the dry run
and the run. Rows stay: a version whose bytes are gone still says what it was and what was made from it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

#: What an attempt handed over and nothing lists is kept so long, whatever the rules say.
UNLISTED_KEPT = timedelta(hours=24)


class ItemKind(StrEnum):
    """What a rule can remove as a whole."""

    VERSION = "version"
    #: The working folder of an ended attempt.
    CHECKPOINTS = "checkpoints"
    #: Files that an attempt handed over and that became nothing.
    UPLOADS = "uploads"
    LOG = "log"


class RuleCode(StrEnum):
    NEWEST_VERSIONS = "newest_versions"
    CHECKPOINT_DAYS = "checkpoint_days"
    FAILED_DAYS = "failed_days"
    LOG_DAYS = "log_days"
    UNLISTED = "unlisted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What one team wants kept; None switches that rule off."""

    enabled: bool = False
    #: Newest versions of each model.
    keep_versions: int | None = None
    #: Days after the end of an attempt.
    checkpoint_days: int | None = None
    failed_days: int | None = None
    log_days: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Something with bytes of its own."""

    kind: ItemKind
    uid: str
    name: str
    #: Uid of the owner; empty where it belongs to every team.
    team: str
    size: int
    #: A version: when it was made. Anything else: when its attempt ended; None while that runs.
    at: datetime | None
    #: Of a version: the model that it belongs to, and its place there. Otherwise the job, by uid.
    series: str = ""
    number: int = 0
    pinned: bool = False
    #: Why it cannot go now, in words ("job x runs with it"); empty if nothing holds it.
    held: str = ""
    #: Uids of versions without whose bytes it cannot be loaded.
    needs: frozenset[str] = frozenset()
    #: Of uploads: the attempt did not succeed, so that they became nothing.
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """One thing that goes, with the rule and its figure: versions or days that are kept."""

    item: Item
    rule: RuleCode
    kept: int

    @property
    def reason(self) -> str:
        match self.rule:
            case RuleCode.NEWEST_VERSIONS:
                return f"only the newest {self.kept} versions of each model are kept"
            case RuleCode.CHECKPOINT_DAYS:
                return f"checkpoints are kept for {self.kept} days after their run"
            case RuleCode.FAILED_DAYS:
                return f"files of failed runs are kept for {self.kept} days"
            case RuleCode.LOG_DAYS:
                return f"logs are kept for {self.kept} days after their run"
            case RuleCode.UNLISTED:
                return "the run has ended and nothing lists these files"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What goes, the largest first, and what a rule would have taken had nothing held it."""

    removals: tuple[Removal, ...]
    spared: tuple[Item, ...]

    @property
    def size(self) -> int:
        """Bytes that stop being charged; blobs that others share stay on disk."""
        return sum(removal.item.size for removal in self.removals)


def plan(
    items: Sequence[Item], *, rules: Mapping[str, Rules], default: Rules, at: datetime
) -> Plan:
    """What goes at that instant. ``rules`` are by team; ``default`` is for teams without any.

    A version that belongs to every team never goes: nobody can say who relies on it.
    """
    places = _places(items)
    chosen: dict[tuple[ItemKind, str], Removal] = {}
    spared: list[Item] = []
    for item in items:
        removal = _wanted(item, rules.get(item.team, default), place=places.get(item.uid, 0), at=at)
        if removal is None:
            continue
        if item.held or item.pinned:
            spared.append(item)
        else:
            chosen[item.kind, item.uid] = removal
    for uid in _needed(items, gone=chosen.keys()):
        rescued = chosen.pop((ItemKind.VERSION, uid), None)
        if rescued is not None:
            spared.append(rescued.item)
    return Plan(
        removals=tuple(sorted(chosen.values(), key=lambda one: (-one.item.size, one.item.uid))),
        spared=tuple(spared),
    )


def _places(items: Iterable[Item]) -> dict[str, int]:
    """Of each version its place in its series, the newest being 0."""
    series: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        if item.kind is ItemKind.VERSION:
            series[item.series].append(item)
    return {
        item.uid: place
        for members in series.values()
        for place, item in enumerate(sorted(members, key=lambda one: -one.number))
    }


def _wanted(item: Item, rules: Rules, *, place: int, at: datetime) -> Removal | None:
    """What the rules say of the item by itself."""
    if item.kind is ItemKind.VERSION:
        return _superseded(item, rules, place=place)
    if item.kind is ItemKind.UPLOADS and not item.failed:
        unlisted = item.at is not None and at - item.at >= UNLISTED_KEPT
        return Removal(item=item, rule=RuleCode.UNLISTED, kept=0) if unlisted else None
    rule, days = {
        ItemKind.CHECKPOINTS: (RuleCode.CHECKPOINT_DAYS, rules.checkpoint_days),
        ItemKind.LOG: (RuleCode.LOG_DAYS, rules.log_days),
        ItemKind.UPLOADS: (RuleCode.FAILED_DAYS, rules.failed_days),
    }[item.kind]
    return _aged(item, rule, days if rules.enabled else None, at=at)


def _superseded(item: Item, rules: Rules, *, place: int) -> Removal | None:
    kept = rules.keep_versions if rules.enabled and item.team else None
    if kept is None or place < max(1, kept):
        return None
    return Removal(item=item, rule=RuleCode.NEWEST_VERSIONS, kept=max(1, kept))


def _aged(item: Item, rule: RuleCode, days: int | None, *, at: datetime) -> Removal | None:
    if days is None or item.at is None or at - item.at < timedelta(days=days):
        return None
    return Removal(item=item, rule=rule, kept=days)


def _needed(items: Sequence[Item], *, gone: Collection[tuple[ItemKind, str]]) -> frozenset[str]:
    """Versions without which something that stays could not be loaded, however far down."""
    needs = {item.uid: item.needs for item in items if item.kind is ItemKind.VERSION}
    reached: set[str] = set()
    ahead = [uid for item in items if (item.kind, item.uid) not in gone for uid in item.needs]
    while ahead:
        uid = ahead.pop()
        if uid not in reached:
            reached.add(uid)
            ahead.extend(needs.get(uid, ()))
    return frozenset(reached)
