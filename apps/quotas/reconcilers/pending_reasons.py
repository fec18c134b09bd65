"""Rate limit for writing pending reasons, where too many change at once.

Whenever a card is allocated, the numbers in the reasons of all pending claims change. To write them all would take
longer than planning, and the next cycle reads again what was written. So claims without a reason come first, and
claims whose reason changed are updated round-robin.
"""

from __future__ import annotations

from time import monotonic

from apps.quotas.selectors.claim_snapshots import PendingReasons
from controlplane.domain.quotas.claims import NOT_EVALUATED_REASON
from controlplane.domain.scheduling.plans import PendingClaim, PendingClaims, PendingCode

#: First reasons per second, and the maximum burst.
MAX_NEW_PER_SECOND = 1000
#: Minimum first reasons per cycle, however fast cycles follow each other.
MIN_NEW_PER_CYCLE = 50
#: Changed reasons per second.
MAX_CHANGED_PER_SECOND = 250
#: Changed reasons per write: fewer are not worth a transaction.
MIN_CHANGED_BATCH, MAX_CHANGED_BATCH = 100, 500


class ReasonBudget:
    """A token bucket: refills at a rate, up to a maximum."""

    def __init__(self, *, per_second: float, at_once: int) -> None:
        self._per_second = per_second
        self._at_once = at_once
        self._tokens: float = at_once
        #: In seconds of a monotonic clock.
        self._counted_at = monotonic()

    def available(self) -> int:
        """Tokens that are available now."""
        now = monotonic()
        more = (now - self._counted_at) * self._per_second
        self._tokens = min(self._at_once, self._tokens + more)
        self._counted_at = now
        return round(self._tokens)

    def use(self, count: int) -> None:
        self._tokens = max(0.0, self._tokens - count)


class ReasonThrottle:
    """Selects the reasons to write; has no influence on scheduling decisions."""

    def __init__(self) -> None:
        self._new = ReasonBudget(per_second=MAX_NEW_PER_SECOND, at_once=MAX_NEW_PER_SECOND)
        self._changed = ReasonBudget(per_second=MAX_CHANGED_PER_SECOND, at_once=MAX_CHANGED_BATCH)
        #: Index of the next refusal in the round-robin.
        self._next = 0

    def due(self, refusals: PendingClaims, reasons: PendingReasons) -> list[PendingClaim]:
        """Reasons that differ from the stored ones, within the rate limit."""
        return self._new_reasons(refusals, reasons) + self._changed_reasons(refusals, reasons)

    def _new_reasons(self, refusals: PendingClaims, reasons: PendingReasons) -> list[PendingClaim]:
        if not reasons.unexplained:
            return []
        # "Not considered yet" is the initial reason.
        considered = (
            group for group in refusals.groups if group.reason.code is not PendingCode.NOT_EVALUATED
        )
        due = [
            group.reason.refuse(claim.uid)
            for group in considered
            for claim in group.claims
            if claim.uid in reasons.unexplained
        ][: max(MIN_NEW_PER_CYCLE, self._new.available())]
        self._new.use(len(due))
        return due

    def _changed_reasons(
        self, refusals: PendingClaims, reasons: PendingReasons
    ) -> list[PendingClaim]:
        due: list[PendingClaim] = []
        most = self._changed.available()
        # In a no-op cycle only newly pending claims are refused again.
        if most < MIN_CHANGED_BATCH or len(refusals) <= len(reasons.unexplained):
            return due
        stored = reasons.by_claim()
        for passed, (reason, claim) in enumerate(refusals.around(self._next), start=1):
            if reason.code is PendingCode.NOT_EVALUATED:
                # The reason of its last search is more useful.
                continue
            if stored.get(claim.uid, reason.reason) not in (reason.reason, NOT_EVALUATED_REASON):
                due.append(reason.refuse(claim.uid))
                if len(due) == most:
                    self._next = (self._next + passed) % len(refusals)
                    break
        self._changed.use(len(due))
        return due
