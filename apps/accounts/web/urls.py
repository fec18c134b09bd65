from __future__ import annotations

from django.contrib.auth.views import LogoutView, PasswordResetDoneView
from django.urls import path

from apps.accounts.web import audit_log, authentication, profile, single_sign_on, teams, users
from apps.accounts.web import device_authorization as devices

_MEMBER = "teams/<slug:slug>/members/<str:uid>"

urlpatterns = [
    path("login", authentication.PasswordLoginView.as_view(), name="login"),
    path("logout", LogoutView.as_view(), name="logout"),
    path("i18n/setlang/", authentication.set_language, name="set_language"),
    path("sign-on", single_sign_on.start_sign_on, name="sign-on"),
    path("sign-on/callback", single_sign_on.sign_on_callback, name="sign-on-callback"),
    path("sign-on/link/<str:token>", single_sign_on.start_identity_link, name="sign-on-link"),
    path("password/reset", authentication.PasswordResetView.as_view(), name="password-reset"),
    path(
        "password/reset/sent",
        PasswordResetDoneView.as_view(template_name="accounts/reset_sent.html"),
        name="password-reset-sent",
    ),
    path(
        "password/set/<uidb64>/<token>",
        authentication.PasswordSetView.as_view(),
        name="password-set",
    ),
    path("oauth/device_authorization", devices.create_device_code, name="device-authorization"),
    path("oauth/token", devices.issue_token, name="device-token"),
    path("device", devices.device_page, name="device"),
    path("profile", profile.profile, name="profile"),
    path("profile/details", profile.profile_change, name="profile-change"),
    path("profile/email", profile.email_change, name="email-change"),
    path("profile/email/sent", profile.email_change_sent, name="email-change-sent"),
    path(
        "profile/email/confirm/<str:token>",
        profile.email_change_confirm,
        name="email-change-confirm",
    ),
    path("profile/password", authentication.PasswordChangeView.as_view(), name="password"),
    path("profile/sessions/end", authentication.log_out_other_sessions, name="sessions-end"),
    path("profile/sign-on/<int:pk>/unlink", single_sign_on.unlink_identity, name="sign-on-unlink"),
    path("profile/tokens/<str:uid>/revoke", profile.token_revoke, name="token-revoke"),
    path("teams", teams.team_list, name="teams"),
    path("teams/new", teams.team_new, name="team-new"),
    path("teams/<slug:slug>", teams.team_detail, name="team"),
    path("teams/<slug:slug>/rename", teams.team_rename, name="team-rename"),
    path(_MEMBER, teams.team_member_detail, name="team-member"),
    path(f"{_MEMBER}/remove", teams.member_remove, name="team-member-remove"),
    path("people", users.user_list, name="people"),
    path("people/new", users.user_new, name="person-new"),
    path("people/<str:uid>", users.user_detail, name="person"),
    path("people/<str:uid>/invite", users.create_invitation, name="person-invite"),
    path("people/<str:uid>/activate", users.activate_user, name="person-activate"),
    path("people/<str:uid>/deactivate", users.deactivate_user, name="person-deactivate"),
    path("people/<str:uid>/unlock", users.unlock_user, name="person-unlock"),
    path("people/<str:uid>/company-roles", users.update_company_roles, name="person-company-roles"),
    path("people/<str:uid>/promote", users.toggle_administrator, name="person-promote"),
    path("audit", audit_log.audit_page, name="audit"),
]
