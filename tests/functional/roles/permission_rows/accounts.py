"""People, teams, their tokens, and what is written down of them."""

from __future__ import annotations

from tests.functional.roles.permission_rules import (
    COMPANY,
    EVERYBODY,
    OWNER,
    TEAM_ADMINS,
    action_row,
    page,
    rest,
)

REST = (
    rest("GET", "me"),
    rest("GET", "tokens"),
    rest("POST", "tokens", body={"name": "fresh", "scopes": ["read"], "expires_at": "{soon}"}),
    rest("DELETE", "tokens/{token}", may=OWNER, hidden=True),
    rest("GET", "teams"),
    rest("POST", "teams", may=COMPANY, body={"name": "Fresh", "slug": "fresh"}),
    rest("GET", "teams/{team}"),
    rest("GET", "teams/{team}/members"),
    rest(
        "PUT",
        "teams/{team}/members/{person.viewer}",
        may=TEAM_ADMINS,
        body={"roles": ["engineer"]},
    ),
    rest("DELETE", "teams/{team}/members/{person.viewer}", may=TEAM_ADMINS),
    rest("GET", "company-roles", may=COMPANY),
    rest(
        "PUT",
        "company-roles/{person.viewer}",
        may=COMPANY,
        company_wide=True,
        body={"roles": ["operator"]},
    ),
    # Whose team one does not administer, of that one sees nothing: the list is empty.
    rest("GET", "audit"),
)

PAGES = (
    page("/login", may=EVERYBODY),
    action_row("/logout", may=EVERYBODY),
    page("/password/reset/sent", may=EVERYBODY),
    page("/password/set/MQ/set-password", may=EVERYBODY),
    page("/profile"),
    action_row("/profile/details", body={"language": "", "time_zone": ""}),
    page("/profile/password"),
    page("/profile/email"),
    page("/profile/email/sent"),
    action_row("/profile/sessions/end"),
    action_row("/profile/tokens/{token}/revoke", may=OWNER, hidden=True),
    page("/teams"),
    page("/teams/new", may=COMPANY),
    action_row("/teams/new", may=COMPANY, body={"name": "Fresh", "slug": "fresh"}),
    page("/teams/{team.slug}"),
    action_row(
        "/teams/{team.slug}",
        may=TEAM_ADMINS,
        body={"user": "free", "roles": ["viewer"]},
    ),
    action_row("/teams/{team.slug}/rename", may=COMPANY, body={"name": "Fresh"}),
    page("/teams/{team.slug}/members/{person.viewer}", may=TEAM_ADMINS),
    action_row(
        "/teams/{team.slug}/members/{person.viewer}",
        may=TEAM_ADMINS,
        body={"roles": ["engineer"]},
    ),
    action_row("/teams/{team.slug}/members/{person.viewer}/remove", may=TEAM_ADMINS),
    page("/people", may=COMPANY),
    page("/people/new", may=COMPANY),
    action_row("/people/new", may=COMPANY, body={"username": "fresh"}),
    page("/people/{person.viewer}", may=COMPANY, company_wide=True),
    action_row("/people/{person.viewer}/invite", may=COMPANY, company_wide=True),
    action_row("/people/{person.viewer}/activate", may=COMPANY, company_wide=True),
    action_row("/people/{person.viewer}/deactivate", may=COMPANY, company_wide=True),
    action_row("/people/{person.viewer}/unlock", may=COMPANY, company_wide=True),
    action_row("/people/{person.viewer}/company-roles", may=COMPANY, company_wide=True),
    action_row("/people/{person.viewer}/promote", may=COMPANY, company_wide=True),
    page("/audit", may=TEAM_ADMINS),
)
