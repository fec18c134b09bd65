from __future__ import annotations

from django.urls import include, path, re_path
from rest_framework.routers import SimpleRouter

from apps.accounts.api import apply_sets, openapi, views, watch
from controlplane.web.rest import UID

#: Imported for what they register.
REGISTERS = (openapi, watch)

router = SimpleRouter(trailing_slash=False)
router.register("tokens", views.TokenViewSet, basename="token")
router.register("teams", views.TeamViewSet, basename="team")
router.register("company-roles", views.CompanyRolesViewSet, basename="company-roles")
router.register("users", views.UserViewSet, basename="user")
router.register("apply-sets", apply_sets.ApplySetViewSet, basename="apply-set")
router.register("audit", views.AuditViewSet, basename="audit")

urlpatterns = [
    path("me", views.CurrentUserView.as_view(), name="me"),
    re_path(
        f"^teams/(?P<uid>{UID})/members$",
        views.TeamMemberViewSet.as_view({"get": "list"}),
        name="team-members",
    ),
    path("", include(router.urls)),
]
