"""People, teams, tokens and the audit trail."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from django.contrib import admin, messages
from django.contrib.auth.models import Group
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from apps.accounts import services
from apps.accounts.models import (
    AuditEntry,
    IdempotencyRecord,
    Membership,
    PersonalToken,
    Team,
    User,
)
from controlplane.web.admin import (
    BaseInline,
    BasePersonAdmin,
    GuardedAdmin,
    ReadOnlyAdmin,
    shortened,
)

Row = TypeVar("Row", bound=Model)

# Roles are held in teams; Django's groups would grant nothing.
admin.site.unregister(Group)


class AuditedAdmin(GuardedAdmin[Row]):
    """Every change made here leaves an audit row, in the transaction that makes it."""

    def log_addition(self, request: HttpRequest, obj: Row, message: Any) -> Any:
        self._audit(request, obj, verb="create", message=message)
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Row, message: Any) -> Any:
        self._audit(request, obj, verb="change", message=message)
        return super().log_change(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: Iterable[Row]) -> Any:
        for row in queryset:
            self._audit(request, row, verb="delete", message="")
        return super().log_deletions(request, queryset)  # type: ignore[arg-type]  # a list is passed too

    def _audit(self, request: HttpRequest, row: Row, *, verb: str, message: Any) -> None:
        owner = row if isinstance(row, Team) else getattr(row, "team", None)
        services.audit(
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
    autocomplete_fields = ("user",)


@admin.register(User)
class PersonAdmin(BasePersonAdmin[User], AuditedAdmin[User]):
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "first_name", "last_name", "is_active", "is_staff", "is_superuser")
    list_filter = ("is_active", "is_staff", "is_superuser", "memberships__team")
    search_fields = ("username", "first_name", "last_name", "email", "uid")
    readonly_fields = ("uid", "last_login", "date_joined")
    filter_horizontal = ()
    fieldsets = (
        (None, {"fields": ("username", "password", "uid")}),
        ("Person", {"fields": ("first_name", "last_name", "email")}),
        ("May log in", {"fields": ("is_active", "is_staff", "is_superuser")}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )


@admin.register(Team)
class TeamAdmin(AuditedAdmin[Team]):
    list_display = ("name", "slug", "created_at")
    search_fields = ("name", "slug", "uid")
    readonly_fields = ("uid", "created_at")
    prepopulated_fields = {"slug": ("name",)}
    inlines = (MembershipInline,)


@admin.register(Membership)
class MembershipAdmin(AuditedAdmin[Membership]):
    list_display = ("user", "team", "role")
    list_filter = ("role", "team")
    search_fields = ("user__username", "team__name")
    autocomplete_fields = ("user", "team")
    list_select_related = ("user", "team")
    # A grant, not a record: the audit trail keeps who had it.
    deletable = True


@admin.register(PersonalToken)
class PersonalTokenAdmin(ReadOnlyAdmin[PersonalToken]):
    list_display = (
        "name",
        "user",
        "prefix",
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
        return shortened(token.digest)

    @admin.action(description="Revoke the selected tokens", permissions=["operate"])
    def revoke(self, request: HttpRequest, tokens: QuerySet[PersonalToken]) -> None:
        if isinstance(request.user, User):
            for token in tokens:
                services.token_revoke(token=token, actor=request.user)
            messages.success(request, "The selected tokens no longer work.")


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin[AuditEntry]):
    list_display = ("at", "actor_name", "action", "object_name", "team")
    list_filter = ("action", "team")
    search_fields = ("actor_name", "object_name", "object_uid")
    list_select_related = ("team",)
    date_hierarchy = "at"


@admin.register(IdempotencyRecord)
class IdempotencyRecordAdmin(ReadOnlyAdmin[IdempotencyRecord]):
    list_display = ("created_at", "user", "key", "status")
    list_filter = ("status",)
    search_fields = ("key", "user__username")
    list_select_related = ("user",)
    # The kept answer may carry a secret that is shown only once, so it is not shown here.
    fields = ("user", "key", "fingerprint_shortened", "status", "created_at")
    readonly_fields = ("fingerprint_shortened",)

    @admin.display(description="fingerprint")
    def fingerprint_shortened(self, record: IdempotencyRecord) -> str:
        return shortened(record.fingerprint)
