"""What the turns of a batch have in common: claims and observations are read once, not once for each attempt."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from apps.jobs.models import Attempt
from apps.jobs.reconcilers import launches
from apps.quotas.models import Claim
from controlplane.domain.jobs import AttemptState
from controlplane.persistence.moves import LeaseLost
from controlplane.ports.clusters import Cluster, ClusterUnavailable, ObservedLaunch

log = logging.getLogger(__name__)

#: What people are told where a turn met what it was not made for.
FAULT = "a fault of ours keeps it from going on; it is tried again, and the worker's log says more"
#: States whose turns ask the cluster what runs.
_OBSERVED = (AttemptState.LAUNCHED, AttemptState.RUNNING, AttemptState.STOPPING)


@dataclass(kw_only=True)
class Scene:
    """A leased batch, and what was found out about it."""

    at: datetime
    attempts: Sequence[Attempt]
    #: By uid.
    claims: Mapping[str, Claim]
    #: Cluster → what was said when it did not answer: nobody waits for it a second time in this turn.
    silent: dict[int, str] = field(default_factory=dict)
    _observed: dict[int | None, Mapping[str, ObservedLaunch]] = field(default_factory=dict)
    #: Clusters that could not answer for all at once: each attempt is observed by itself.
    _failed: set[int | None] = field(default_factory=set)

    def claim(self, attempt: Attempt) -> Claim:
        return self.claims[attempt.claim_uid]

    def observed(self, attempt: Attempt) -> ObservedLaunch | None:
        """What the cluster knows of it; None if nothing.

        :raises ClusterUnavailable: if it does not answer.
        :raises ValueError: if the attempt has not been admitted to a cluster.
        """
        key, name, adapter = attempt.cluster_id, attempt.launch_name, launches.adapter_of(attempt)
        if key not in self._observed and key not in self._failed:
            self._observe_all(key, adapter)
        if key in self._failed:
            return adapter.observe([name]).get(name)
        return self._observed[key].get(name)

    def _observe_all(self, key: int | None, adapter: Cluster) -> None:
        names = [
            one.launch_name
            for one in self.attempts
            if one.cluster_id == key and one.state in _OBSERVED
        ]
        try:
            self._observed[key] = adapter.observe(names)
        except ClusterUnavailable:
            raise
        except Exception:
            # One of them may be what nobody can read: the others are asked for by themselves.
            log.exception("launches could not be observed at once", extra={"attempts": len(names)})
            self._failed.add(key)

    @contextmanager
    def guarding(self, attempt: Attempt) -> Iterator[None]:
        """One attempt's trouble must not stop the others: it is noted, and the next turn looks again."""
        try:
            yield
        except LeaseLost:
            log.info("another worker took over", extra={"attempt": attempt.uid})
        except ClusterUnavailable as error:
            message = f"the cluster does not answer: {error}"
            if attempt.cluster_id is not None:
                self.silent[attempt.cluster_id] = message
            note(attempt, message)
        except Exception:
            log.exception("a turn failed", extra={"attempt": attempt.uid, "state": attempt.state})
            note(attempt, FAULT)

    def waits(self, attempt: Attempt) -> bool:
        """Whether its cluster did not answer in this turn; it says so then."""
        message = None if attempt.cluster_id is None else self.silent.get(attempt.cluster_id)
        if message is None:
            return False
        note(attempt, message)
        return True


def scene_of(attempts: Sequence[Attempt], *, at: datetime) -> Scene:
    claims = Claim.objects.select_related("queue")
    found = claims.filter(uid__in=[attempt.claim_uid for attempt in attempts])
    return Scene(at=at, attempts=attempts, claims={claim.uid: claim for claim in found})


def note(attempt: Attempt, message: str) -> None:
    if attempt.message != message:
        Attempt.objects.filter(pk=attempt.pk, lease_token=attempt.lease_token).update(
            message=message
        )
