"""Changes to users, teams and tokens; the audit log."""

from apps.accounts.services.audit_log import audit_prune, record_audit_entry
from apps.accounts.services.idempotency import (
    IDEMPOTENCY_RETENTION,
    IdempotencyMismatch,
    IdempotentRequestInProgress,
    StoredIdempotentResponse,
    idempotency_begin,
    idempotency_end,
    idempotency_prune,
)
from apps.accounts.services.personal_tokens import (
    TOKEN_PREFIX,
    TokenRefused,
    authenticate_personal_token,
    generate_secret_token,
    token_create,
    token_digest,
    token_rename,
    token_revoke,
)
from apps.accounts.services.single_sign_on import (
    SignOnRefused,
    identity_link,
    identity_unlink,
    user_sign_in,
)
from apps.accounts.services.teams import (
    ADMIN_ROLES,
    MembershipRefused,
    TeamNameTaken,
    membership_set,
    memberships_sync,
    staff_status_update,
    team_create,
    team_ensure,
    team_rename,
)
from apps.accounts.services.users import (
    UserChangeRefused,
    administrator_ensure,
    check_email_available,
    company_roles_set,
    create_password_invitation,
    email_change,
    profile_change,
    user_create,
    user_other_sessions_end,
    user_set_active,
    user_set_administrator,
    user_unlock,
)
