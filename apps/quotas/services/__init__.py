"""Changes to queues, claims and the ledger."""

from __future__ import annotations

from apps.quotas.services.admissions import (
    AdmissionOutcomes,
    claims_admit,
    nominations_delete,
    nominations_prune,
)
from apps.quotas.services.claims import (
    ClaimRequest,
    ClaimTerms,
    ClaimWorkload,
    PendingLimitExceeded,
    QueueNotAcceptingClaims,
    claim_progress_update,
    claim_release,
    claim_revoke,
    claims_create,
    claims_evict,
    claims_reasons_update,
    claims_release,
    claims_revoke,
    pending_limit_check,
)
from apps.quotas.services.queue_trees import (
    QueueTreeConflict,
    QueueTreeOutdated,
    QueueTreeRefused,
    QueueTreeUnchanged,
    queue_change_revert,
    queue_change_revert_edit,
    queue_ensure_default,
    queue_tree_apply,
    queue_tree_preview,
)
from controlplane.domain.quotas.queue_documents import TreeAction, TreeEdit
