"""Context of a reconcile run: claims and observations are read once for the batch, not once for each attempt."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from apps.jobs.models import Attempt
from apps.jobs.reconcilers import launches
from apps.quotas.models import Claim
from controlplane.domain.jobs.lifecycle import AttemptState
from controlplane.persistence.leases import INTERNAL_ERROR
from controlplane.persistence.state_transitions import LeaseLost
from controlplane.ports.clusters import ClusterAdapter, ClusterUnavailable, ObservedLaunch

log = logging.getLogger(__name__)

#: States in which the cluster is asked for the state of the Launch.
_OBSERVED = (AttemptState.LAUNCHED, AttemptState.RUNNING, AttemptState.STOPPING)


@dataclass(kw_only=True)
class AttemptReconcileContext:
    """A leased batch of attempts with their claims and observations."""

    at: datetime
    attempts: Sequence[Attempt]
    #: By uid.
    claims: Mapping[str, Claim]
    #: Cluster → message of its failure: a cluster that did not answer is not asked again in this run.
    unreachable: dict[int, str] = field(default_factory=dict)
    _observed: dict[int | None, Mapping[str, ObservedLaunch]] = field(default_factory=dict)
    #: Clusters that failed to observe the batch: their attempts are observed one by one.
    _failed: set[int | None] = field(default_factory=set)

    def claim(self, attempt: Attempt) -> Claim:
        return self.claims[attempt.claim_uid]

    def observed(self, attempt: Attempt) -> ObservedLaunch | None:
        """The Launch as the cluster reports it; None if the cluster does not know it.

        :raises ClusterUnavailable: if it does not answer.
        :raises ValueError: if the attempt has not been admitted to a cluster.
        """
        key, name, adapter = (
            attempt.cluster_id,
            attempt.launch_name,
            launches.attempt_cluster_adapter(attempt),
        )
        if key not in self._observed and key not in self._failed:
            self._observe_all(key, adapter)
        if key in self._failed:
            return adapter.observe([name]).get(name)
        return self._observed[key].get(name)

    def _observe_all(self, key: int | None, adapter: ClusterAdapter) -> None:
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
            # One of them may be unreadable: observe each by itself.
            log.exception("launches could not be observed at once", extra={"attempts": len(names)})
            self._failed.add(key)

    @contextmanager
    def isolate_attempt_errors(self, attempt: Attempt) -> Iterator[None]:
        """Record an error of one attempt as its message, so that the others are still reconciled."""
        try:
            yield
        except LeaseLost:
            log.info("another worker took over", extra={"attempt": attempt.uid})
        except ClusterUnavailable as error:
            if attempt.cluster_id is not None:
                self.unreachable[attempt.cluster_id] = error.message
            attempt_message_set(attempt, error.message)
        except Exception:
            log.exception(
                "an attempt could not be reconciled",
                extra={"attempt": attempt.uid, "state": attempt.state},
            )
            attempt_message_set(attempt, INTERNAL_ERROR)

    def is_unreachable(self, attempt: Attempt) -> bool:
        """Whether its cluster did not answer in this run; sets the message of the attempt if so."""
        message = None if attempt.cluster_id is None else self.unreachable.get(attempt.cluster_id)
        if message is None:
            return False
        attempt_message_set(attempt, message)
        return True


def attempt_reconcile_context(
    attempts: Sequence[Attempt], *, at: datetime
) -> AttemptReconcileContext:
    claims = Claim.objects.select_related("queue")
    found = claims.filter(uid__in=[attempt.claim_uid for attempt in attempts])
    return AttemptReconcileContext(
        at=at, attempts=attempts, claims={claim.uid: claim for claim in found}
    )


def attempt_message_set(attempt: Attempt, message: str) -> None:
    if attempt.message != message:
        Attempt.objects.filter(pk=attempt.pk, lease_token=attempt.lease_token).update(
            message=message
        )
