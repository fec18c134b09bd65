"""Changes to queues, claims and the ledger."""

from __future__ import annotations

from apps.quotas.services.admissions import (
    Admissions,
    claim_admit,
    claims_admit,
    nominations_prune,
    nominations_release,
)
from apps.quotas.services.claims import (
    ClaimRequest,
    ClaimTerms,
    ClaimWorkload,
    PendingLimitExceeded,
    QueueNotAccepting,
    claim_progress_update,
    claim_release,
    claim_request,
    claim_revoke,
    claims_evict,
    claims_reasons_update,
    claims_release,
    claims_request,
    claims_revoke,
    pending_limit_check,
)
from apps.quotas.services.queue_trees import (
    TreeConflict,
    TreeOutdated,
    TreeRefused,
    TreeUnchanged,
    change_revert,
    change_revert_edit,
    queue_ensure_default,
    queue_tree_preview,
    tree_apply,
)
from controlplane.domain.quotas.documents import TreeAction, TreeEdit
from controlplane.domain.scheduling.commit_validation import PlacementConflict

__all__ = [
    "Admissions",
    "ClaimRequest",
    "ClaimTerms",
    "ClaimWorkload",
    "PendingLimitExceeded",
    "PlacementConflict",
    "QueueNotAccepting",
    "TreeAction",
    "TreeConflict",
    "TreeEdit",
    "TreeOutdated",
    "TreeRefused",
    "TreeUnchanged",
    "change_revert",
    "change_revert_edit",
    "claim_admit",
    "claim_progress_update",
    "claim_release",
    "claim_request",
    "claim_revoke",
    "claims_admit",
    "claims_evict",
    "claims_reasons_update",
    "claims_release",
    "claims_request",
    "claims_revoke",
    "nominations_prune",
    "nominations_release",
    "pending_limit_check",
    "queue_ensure_default",
    "queue_tree_preview",
    "tree_apply",
]
