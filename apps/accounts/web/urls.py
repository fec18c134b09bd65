from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.urls import path

from apps.accounts.web import views

urlpatterns = [
    path("login", views.LogIn.as_view(), name="login"),
    path("logout", LogoutView.as_view(), name="logout"),
    path("profile", views.profile, name="profile"),
    path("profile/password", views.PasswordChange.as_view(), name="password"),
    path("profile/tokens/<str:uid>/revoke", views.token_revoke, name="token-revoke"),
]
