"""Admin: row-level scoping for all apps, and the pages of users, teams, tokens and the audit log.

A company administrator sees every table. A user with a role that covers more than their own work sees the
tables of that role in the teams where they have it: a team administrator everything the team owns, a queue
admin its queues. A company operator sees the fleet. Rows of other teams are excluded from lists, filters,
choices and detail URLs alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, ClassVar, TypeVar

from django.contrib import admin, messages
from django.contrib.admin.exceptions import NotRegistered
from django.contrib.auth.models import Group
from django.contrib.auth.views import redirect_to_login
from django.db.models import Field, ForeignKey, Model, QuerySet
from django.forms import ModelChoiceField
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from apps.accounts import selectors, services
from apps.accounts.models import (
    ApplySet,
    ApplySetObject,
    AuditEntry,
    CompanyRoleBinding,
    DeviceAuthorization,
    ExternalIdentity,
    IdempotencyRecord,
    Membership,
    PersonalToken,
    Team,
    User,
)
from controlplane.domain.common.permissions import Permission, roles_grant
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.web.admin import (
    BaseInline,
    BaseUserAdmin,
    ReadOnlyAdmin,
    TransitionAdmin,
    UndeletableAdmin,
    shorten_digest,
)

Row = TypeVar("Row", bound=Model)

# Roles are held in teams; Django's groups would grant nothing.
admin.site.unregister(Group)


def admin_login_redirect(request: HttpRequest, _context: Any = None) -> HttpResponse:
    """The admin has no sign-in page of its own: it redirects to the one of the product."""
    if not request.user.is_authenticated:
        return redirect_to_login(request.GET.get("next", reverse("admin:index")))
    if request.user.is_staff:
        return redirect("admin:index")
    raise selectors.PermissionRefused(
        _("the admin pages require the role queue admin, operator or administrator")
    )


admin.site.login = admin_login_redirect  # type: ignore[assignment, method-assign]  # as the manual replaces it


class VisibleRelatedFilter(admin.RelatedFieldListFilter):
    """Related-field filter limited to rows that the user can see."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> list[Any]:
        rows = _visible_rows(field.related_model, request, site=model_admin.admin_site)
        return [(str(row.pk), str(row)) for row in rows] if rows is not None else []


def _visible_rows(
    model: type[Model], request: HttpRequest, *, site: admin.AdminSite
) -> QuerySet[Any] | None:
    """Return the rows of that model that the user can see; None where the admin has no page for it."""
    try:
        return site.get_model_admin(model).get_queryset(request)
    except NotRegistered:
        return None


def _team_keys_with_permission(request: HttpRequest, permission: Permission) -> list[int]:
    """Return the keys of the teams in which the user has the permission; one query per request."""
    current = getattr(request, "roles_by_team", None)
    if current is None:
        current = selectors.roles_by_team(request.user)
        request.roles_by_team = current  # type: ignore[attr-defined] # kept for this request
    return [team for team, roles in current.items() if roles_grant(roles, permission)]


class ScopedAdmin(UndeletableAdmin[Row]):
    """Admin page limited to rows of the teams in which the user has the permission; actions likewise."""

    #: From the row to its team; empty: it belongs to everybody, and is seen by a company role or by the
    #: permission in any team; None: for administrators of the company only.
    team_path: ClassVar[str | None] = None
    view_permission: ClassVar[Permission] = Permission.MANAGE_TEAM
    #: None: only administrators of the company change rows.
    change_permission: ClassVar[Permission | None] = None

    def get_queryset(self, request: HttpRequest) -> QuerySet[Row]:
        rows = super().get_queryset(request)
        if selectors.is_company_administrator(request.user):
            return rows
        if self.team_path is None:
            return rows.none()
        teams = _team_keys_with_permission(request, self.view_permission)
        if self.team_path:
            return rows.filter(**{f"{self.team_path}__in": teams})
        seen = teams or selectors.has_company_permission(request.user, self.view_permission)
        return rows if seen else rows.none()

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Row | None:
        """:raises Http404: if the user can see no such row, whether or not it exists."""
        found = super().get_object(request, object_id, from_field)
        if found is None:
            raise Http404
        return found

    def has_view_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return self._has_scoped_permission(request, self.view_permission, obj)

    def has_change_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return self._has_scoped_permission(request, self.change_permission, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.addable and selectors.is_company_administrator(request.user)

    def has_delete_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return self.deletable and self._has_scoped_permission(request, None, obj)

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Viewing permission includes the actions: both need a role that covers such rows."""
        return self.has_view_permission(request)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def _has_scoped_permission(
        self, request: HttpRequest, permission: Permission | None, obj: Row | None
    ) -> bool:
        if selectors.is_company_administrator(request.user):
            return True
        if permission is None or self.team_path is None:
            return False
        teams = _team_keys_with_permission(request, permission)
        if not self.team_path:
            return bool(teams) or selectors.has_company_permission(request.user, permission)
        if obj is None:
            return bool(teams)
        owner: Any = obj
        for name in self.team_path.split("__"):
            owner = getattr(owner, name, None)
        return getattr(owner, "pk", owner) in teams

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> ModelChoiceField[Any] | None:
        target = db_field.related_model
        if "queryset" not in kwargs and not selectors.is_company_administrator(request.user):
            rows = _visible_rows(target, request, site=self.admin_site)
            kwargs["queryset"] = target._default_manager.none() if rows is None else rows
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def get_list_filter(self, request: HttpRequest) -> list[Any]:
        return [
            (name, VisibleRelatedFilter)
            if isinstance(name, str) and self._is_relation_path(name)
            else name
            for name in super().get_list_filter(request)
        ]

    def _is_relation_path(self, path: str) -> bool:
        model: Any = self.model
        field: Field[Any, Any] | None = None
        for name in path.split("__"):
            field = model._meta.get_field(name)
            model = field.related_model
        return field is not None and field.is_relation


class ScopedReadOnlyAdmin(ReadOnlyAdmin[Row], ScopedAdmin[Row]):
    """Rows that only services and controllers write, limited to what the user can see."""

    def apply_to_each(
        self,
        request: HttpRequest,
        rows: Iterable[Row],
        action: Callable[[Row, User, datetime], object],
        *,
        done: str,
        refusals: tuple[type[Exception], ...] = (IllegalTransition,),
    ) -> None:
        """Apply the action to each row; one that refuses it does not affect the others.

        :param done: what is said of a row after its name, such as "is being cancelled."
        """
        for row in rows:
            try:
                if isinstance(request.user, User):
                    action(row, request.user, timezone.now())
            except refusals as refusal:
                messages.error(request, f"{row}: {refusal}")
            else:
                messages.success(request, f"{row}: {done}")


class ScopedTransitionAdmin(TransitionAdmin[Row], ScopedAdmin[Row]):
    """Moves of one state machine, narrowed to who may see them."""


class AuditedAdmin(ScopedAdmin[Row]):
    """Writes an audit entry for every change, in the same transaction."""

    def log_addition(self, request: HttpRequest, obj: Row, message: Any) -> Any:
        self._audit_change(request, obj, verb="create", message=message)
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Row, message: Any) -> Any:
        self._audit_change(request, obj, verb="change", message=message)
        return super().log_change(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: Iterable[Row]) -> Any:
        for row in queryset:
            self._audit_change(request, row, verb="delete", message="")
        return super().log_deletions(request, queryset)  # type: ignore[arg-type]  # a list is passed too

    def _audit_change(self, request: HttpRequest, row: Row, *, verb: str, message: Any) -> None:
        owner = row if isinstance(row, Team) else getattr(row, "team", None)
        services.record_audit_entry(
            actor=request.user,
            action=f"{self.opts.model_name}.{verb}",
            # A team that has just been deleted can be named, not referred to.
            team=owner if verb != "delete" or owner is not row else None,
            uid=getattr(row, "uid", ""),
            name=str(row)[:200],
            by="admin",
            change=message,
        )


class MembershipInline(BaseInline[Membership, Team]):
    model = Membership
    extra = 0
    fields = ("user", "role")
    autocomplete_fields = ("user",)


@admin.register(User)
class UserAccountAdmin(BaseUserAdmin[User], AuditedAdmin[User]):
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "first_name", "last_name", "is_active", "is_staff", "is_superuser")
    list_filter = ("is_active", "is_staff", "is_superuser", "memberships__team")
    search_fields = ("username", "first_name", "last_name", "email", "uid")
    # Activation and company administration are changed on the users page, whose services
    # end sessions and keep the last administrator; access to the admin follows from roles.
    readonly_fields = (
        "uid",
        "is_active",
        "is_staff",
        "is_superuser",
        "last_login",
        "date_joined",
    )
    filter_horizontal = ()
    fieldsets = (
        (None, {"fields": ("username", "password", "uid")}),
        ("Person", {"fields": ("first_name", "last_name", "email")}),
        ("May log in", {"fields": ("is_active", "is_staff", "is_superuser")}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )


@admin.register(Team)
class TeamAdmin(AuditedAdmin[Team]):
    team_path = "pk"
    list_display = ("name", "slug", "created_at")
    search_fields = ("name", "slug", "uid")
    readonly_fields = ("uid", "created_at")
    prepopulated_fields = {"slug": ("name",)}
    inlines = (MembershipInline,)


@admin.register(Membership)
class MembershipAdmin(AuditedAdmin[Membership]):
    team_path = "team"
    list_display = ("user", "team", "role", "source")
    list_filter = ("role", "source", "team")
    readonly_fields = ("source",)
    search_fields = ("user__username", "team__name")
    autocomplete_fields = ("user", "team")
    list_select_related = ("user", "team")
    # A grant, not a record: the audit log keeps its history.
    deletable = True


@admin.register(CompanyRoleBinding)
class CompanyRoleBindingAdmin(ScopedReadOnlyAdmin[CompanyRoleBinding]):
    """Company roles are granted on the page of the user."""

    list_display = ("user", "role", "source")
    list_filter = ("role", "source")
    search_fields = ("user__username",)
    list_select_related = ("user",)


@admin.register(PersonalToken)
class PersonalTokenAdmin(ScopedReadOnlyAdmin[PersonalToken]):
    list_display = (
        "name",
        "user",
        "prefix",
        "scopes",
        "created_at",
        "last_used_at",
        "expires_at",
        "revoked_at",
    )
    list_filter = (("revoked_at", admin.EmptyFieldListFilter),)
    search_fields = ("name", "prefix", "user__username", "uid")
    list_select_related = ("user",)
    fields = (
        "uid",
        "user",
        "name",
        "scopes",
        "team",
        "prefix",
        "digest_shortened",
        "created_at",
        "last_used_at",
        "expires_at",
        "revoked_at",
    )
    readonly_fields = ("digest_shortened",)
    actions = ("revoke",)

    @admin.display(description="digest")
    def digest_shortened(self, token: PersonalToken) -> str:
        return shorten_digest(token.digest)

    @admin.action(description="Revoke the selected tokens", permissions=["operate"])
    def revoke(self, request: HttpRequest, tokens: QuerySet[PersonalToken]) -> None:
        if isinstance(request.user, User):
            for token in tokens:
                services.token_revoke(token=token, actor=request.user)
            messages.success(request, "The selected tokens no longer work.")


@admin.register(AuditEntry)
class AuditEntryAdmin(ScopedReadOnlyAdmin[AuditEntry]):
    team_path = "team"
    list_display = ("at", "actor_name", "action", "object_name", "team", "remote_address")
    list_filter = ("action", "team")
    search_fields = ("actor_name", "object_name", "object_uid")
    list_select_related = ("team",)
    date_hierarchy = "at"


@admin.register(ExternalIdentity)
class ExternalIdentityAdmin(ScopedReadOnlyAdmin[ExternalIdentity]):
    list_display = ("user", "issuer", "name", "subject", "granted_administrator", "last_used_at")
    search_fields = ("user__username", "name", "subject")
    list_select_related = ("user",)
    ordering = ("user__username",)


@admin.register(IdempotencyRecord)
class IdempotencyRecordAdmin(ScopedReadOnlyAdmin[IdempotencyRecord]):
    list_display = ("created_at", "user", "key", "status")
    list_filter = ("status",)
    search_fields = ("key", "user__username")
    list_select_related = ("user",)
    # The stored response may contain a secret that is shown only once, so it is not shown here.
    fields = ("user", "key", "fingerprint_shortened", "status", "created_at")
    readonly_fields = ("fingerprint_shortened",)

    @admin.display(description="fingerprint")
    def fingerprint_shortened(self, record: IdempotencyRecord) -> str:
        return shorten_digest(record.fingerprint)


@admin.register(DeviceAuthorization)
class DeviceAuthorizationAdmin(ScopedReadOnlyAdmin[DeviceAuthorization]):
    """Sign-ins of the command line. The codes are those of whoever signs in, so they are not shown."""

    list_display = ("created_at", "user", "decision", "host", "remote_address", "expires_at")
    list_filter = ("decision",)
    search_fields = ("user__username", "host")
    list_select_related = ("user",)
    ordering = ("-id",)
    fields = (
        "uid",
        "user",
        "decision",
        "scopes",
        "host",
        "remote_address",
        "created_at",
        "expires_at",
        "polled_at",
    )


class ApplySetObjectInline(BaseInline[ApplySetObject, ApplySet]):
    model = ApplySetObject
    extra = 0
    fields = ("kind", "name", "object_uid")


@admin.register(ApplySet)
class ApplySetAdmin(ScopedReadOnlyAdmin[ApplySet]):
    team_path = "team"
    list_display = ("name", "team", "version", "created_by", "changed_at")
    list_filter = ("team",)
    search_fields = ("name", "uid")
    list_select_related = ("team", "created_by")
    inlines = (ApplySetObjectInline,)
