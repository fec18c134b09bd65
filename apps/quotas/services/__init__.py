"""Changes to queues, claims and the ledger."""

from __future__ import annotations

from apps.quotas.services.admissions import Admissions, claim_admit, claims_admit
from apps.quotas.services.claims import (
    PendingLimitExceeded,
    QueueTakesNothing,
    Request,
    Terms,
    Work,
    claim_progress,
    claim_release,
    claim_request,
    claim_revoke,
    claims_refused,
    claims_release,
    claims_request,
    pending_check,
)
from apps.quotas.services.cycles import cycle_measured
from apps.quotas.services.nominations import nominations_prune, nominations_release
from apps.quotas.services.queues import queue_ensure_default, queue_state_set
from apps.quotas.services.revocations import claims_revoke, claims_withdraw
from apps.quotas.services.trees import (
    TreeAct,
    TreeEdit,
    TreeMoved,
    TreeOutdated,
    TreePreview,
    TreeRefused,
    TreeUnchanged,
    change_edit,
    change_revert,
    tree_apply,
    tree_check,
    tree_fingerprint,
    tree_preview,
)
from controlplane.domain.scheduling.books import PlacementConflict

__all__ = [
    "Admissions",
    "PendingLimitExceeded",
    "PlacementConflict",
    "QueueTakesNothing",
    "Request",
    "Terms",
    "TreeAct",
    "TreeEdit",
    "TreeMoved",
    "TreeOutdated",
    "TreePreview",
    "TreeRefused",
    "TreeUnchanged",
    "Work",
    "change_edit",
    "change_revert",
    "claim_admit",
    "claim_progress",
    "claim_release",
    "claim_request",
    "claim_revoke",
    "claims_admit",
    "claims_refused",
    "claims_release",
    "claims_request",
    "claims_revoke",
    "claims_withdraw",
    "cycle_measured",
    "nominations_prune",
    "nominations_release",
    "pending_check",
    "queue_ensure_default",
    "queue_state_set",
    "tree_apply",
    "tree_check",
    "tree_fingerprint",
    "tree_preview",
]
