"""Which claims are told why they wait, where they are too many to be told all at once.

Whenever a card is taken, the numbers in the reasons of all that wait change. To write them all would take longer
than to decide; and what was written is read again by the next cycle. So whoever has not been told anything yet
comes first, and those who were told other numbers are told the new ones in turns.
"""

from __future__ import annotations

from time import monotonic

from apps.quotas.selectors.claim_rows import Told
from controlplane.domain.claims import UNTOLD
from controlplane.domain.scheduling.plans import Refusal, RefusalCode, Refusals

#: Claims that are told for the first time: in a second, and as many at once at most.
MOST_NEWCOMERS = 1000
#: And at least in one cycle, however fast cycles follow each other.
FEWEST_NEWCOMERS = 50
#: Claims that are told something else than before, in a second.
MOST_CHANGED = 250
#: And at once: fewer are not worth a transaction while cycles follow each other.
FEWEST_CHANGED_AT_ONCE, MOST_CHANGED_AT_ONCE = 100, 500


class Allowance:
    """So many in a second; what is not used is there for later, up to a bound."""

    def __init__(self, *, per_second: float, at_once: int) -> None:
        self._per_second = per_second
        self._at_once = at_once
        self._left: float = at_once
        #: In seconds of a clock that only goes forward.
        self._counted_at = monotonic()

    def left(self) -> int:
        """How many may be used now."""
        now = monotonic()
        more = (now - self._counted_at) * self._per_second
        self._left = min(self._at_once, self._left + more)
        self._counted_at = now
        return round(self._left)

    def use(self, count: int) -> None:
        self._left = max(0.0, self._left - count)


class Teller:
    """What this process has told; nothing that is decided depends on it."""

    def __init__(self) -> None:
        self._newcomers = Allowance(per_second=MOST_NEWCOMERS, at_once=MOST_NEWCOMERS)
        self._changed = Allowance(per_second=MOST_CHANGED, at_once=MOST_CHANGED_AT_ONCE)
        #: Among those that are refused, the one whose turn is next.
        self._place = 0

    def news(self, refusals: Refusals, told: Told) -> list[Refusal]:
        """Reasons that are not what the claim was told last, of as many claims as may be told now."""
        return self._first(refusals, told) + self._other(refusals, told)

    def _first(self, refusals: Refusals, told: Told) -> list[Refusal]:
        if not told.unheard:
            return []
        # That nobody has looked at them is what they are told already.
        looked_at = (
            group for group in refusals.groups if group.reason.code is not RefusalCode.NOT_LOOKED_AT
        )
        news = [
            group.reason.refuse(claim.uid)
            for group in looked_at
            for claim in group.claims
            if claim.uid in told.unheard
        ][: max(FEWEST_NEWCOMERS, self._newcomers.left())]
        self._newcomers.use(len(news))
        return news

    def _other(self, refusals: Refusals, told: Told) -> list[Refusal]:
        news: list[Refusal] = []
        most = self._changed.left()
        # At a standstill only newcomers are refused anew.
        if most < FEWEST_CHANGED_AT_ONCE or len(refusals) <= len(told.unheard):
            return news
        were = told.by_claim()
        for passed, (reason, claim) in enumerate(refusals.around(self._place), start=1):
            if reason.code is RefusalCode.NOT_LOOKED_AT:
                # What its last search said is worth more.
                continue
            if were.get(claim.uid, reason.reason) not in (reason.reason, UNTOLD):
                news.append(reason.refuse(claim.uid))
                if len(news) == most:
                    self._place = (self._place + passed) % len(refusals)
                    break
        self._changed.use(len(news))
        return news
