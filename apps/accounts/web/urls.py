from __future__ import annotations

from django.contrib.auth.views import LogoutView, PasswordResetDoneView
from django.urls import path

from apps.accounts.web import audits, email_change, people, profiles, sessions, sign_on, teams

urlpatterns = [
    path("login", sessions.LogIn.as_view(), name="login"),
    path("logout", LogoutView.as_view(), name="logout"),
    path("i18n/setlang/", sessions.set_language, name="set_language"),
    path("sign-on", sign_on.begin, name="sign-on"),
    path("sign-on/callback", sign_on.callback, name="sign-on-callback"),
    path("sign-on/link/<str:token>", sign_on.begin_link, name="sign-on-link"),
    path("password/reset", sessions.PasswordReset.as_view(), name="password-reset"),
    path(
        "password/reset/sent",
        PasswordResetDoneView.as_view(template_name="accounts/reset_sent.html"),
        name="password-reset-sent",
    ),
    path("password/set/<uidb64>/<token>", sessions.PasswordSet.as_view(), name="password-set"),
    path("profile", profiles.profile, name="profile"),
    path("profile/details", profiles.change, name="profile-change"),
    path("profile/email", email_change.change, name="email-change"),
    path("profile/email/sent", email_change.sent, name="email-change-sent"),
    path("profile/email/confirm/<str:token>", email_change.confirm, name="email-change-confirm"),
    path("profile/password", sessions.PasswordChange.as_view(), name="password"),
    path("profile/sessions/end", sessions.log_out_everywhere, name="sessions-end"),
    path("profile/sign-on/<int:pk>/unlink", sign_on.unlink, name="sign-on-unlink"),
    path("profile/tokens/<str:uid>/revoke", profiles.token_revoke, name="token-revoke"),
    path("teams", teams.teams, name="teams"),
    path("teams/new", teams.team_new, name="team-new"),
    path("teams/<slug:slug>", teams.team, name="team"),
    path("teams/<slug:slug>/rename", teams.team_rename, name="team-rename"),
    path("teams/<slug:slug>/members/<str:uid>", teams.member, name="team-member"),
    path(
        "teams/<slug:slug>/members/<str:uid>/remove",
        teams.member_remove,
        name="team-member-remove",
    ),
    path("people", people.people, name="people"),
    path("people/new", people.person_new, name="person-new"),
    path("people/<str:uid>", people.person, name="person"),
    path("people/<str:uid>/invite", people.invite, name="person-invite"),
    path("people/<str:uid>/activate", people.activate, name="person-activate"),
    path("people/<str:uid>/deactivate", people.deactivate, name="person-deactivate"),
    path("people/<str:uid>/unlock", people.unlock, name="person-unlock"),
    path("people/<str:uid>/company-roles", people.company_roles, name="person-company-roles"),
    path("people/<str:uid>/promote", people.promote, name="person-promote"),
    path("audit", audits.audit, name="audit"),
]
