"""Base classes of admin pages: history is read-only.

Rows that record the past cannot be changed here. Rows with a state machine are changed by actions that call
the same services as pages and REST. Leases and the outbox belong to no app, so their admin pages are here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from django.contrib import admin
from django.db.models import Field, Model
from django.forms import CharField
from django.forms import Field as FormField
from django.http import HttpRequest

from controlplane.domain.common.name_validation import is_name_field
from controlplane.outbox.models import OutboxMessage
from controlplane.persistence.models import ControllerState, Lease
from controlplane.web.forms import validate_name

Row = TypeVar("Row", bound=Model)

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin as BaseAdmin
    from django.contrib.admin import TabularInline as BaseInline
    from django.contrib.auth.admin import UserAdmin as BaseUserAdmin
    from django.forms import ModelForm as RowForm
else:
    from django.contrib.auth.admin import UserAdmin
    from django.forms import ModelForm
    from unfold.admin import ModelAdmin as UnfoldAdmin
    from unfold.admin import TabularInline as UnfoldInline

    class BaseAdmin(UnfoldAdmin, Generic[Row]):
        pass

    Parent = TypeVar("Parent", bound=Model)

    class BaseInline(UnfoldInline, Generic[Row, Parent]):
        pass

    class BaseUserAdmin(UserAdmin, Generic[Row]):
        pass

    class RowForm(ModelForm, Generic[Row]):
        pass


__all__ = [
    "BaseAdmin",
    "BaseInline",
    "BaseUserAdmin",
    "ReadOnlyAdmin",
    "RowForm",
    "TransitionAdmin",
    "UndeletableAdmin",
    "shorten_digest",
]


class UndeletableAdmin(BaseAdmin[Row]):
    """Rows with a history: viewable, editable where a page allows it, never deletable."""

    list_per_page = 50
    #: Counting a large table costs more than its page.
    show_full_result_count = False
    addable: ClassVar[bool] = True
    deletable: ClassVar[bool] = False

    def formfield_for_dbfield(
        self, db_field: Field[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> FormField | None:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if isinstance(field, CharField) and is_name_field(db_field.name):
            field.validators.append(validate_name)
        return field

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.addable and super().has_add_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return self.deletable and self.has_operate_permission(request)

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Actions that move a state machine are for administrators of the company."""
        return bool(request.user.is_active and getattr(request.user, "is_superuser", False))


class ReadOnlyAdmin(UndeletableAdmin[Row]):
    """Rows that only services and controllers write."""

    addable = False

    def has_change_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return False


def shorten_digest(digest: str) -> str:
    """Return the beginning of a digest: enough to compare, too little to use."""
    return f"{digest[:12]}…" if digest else ""


class TransitionAdmin(ReadOnlyAdmin[Row]):
    """Transitions of one state machine."""

    list_display = ("at", "entity", "from_state", "event", "to_state", "actor", "reason")
    list_filter = ("event", "to_state")
    search_fields = ("entity__uid", "reason", "actor")
    list_select_related = ("entity",)
    ordering = ("-id",)
    date_hierarchy = "at"


@admin.register(OutboxMessage)
class OutboxMessageAdmin(ReadOnlyAdmin[OutboxMessage]):
    list_display = ("id", "topic", "payload", "created_at", "delivered_at")
    list_filter = ("topic", ("delivered_at", admin.EmptyFieldListFilter))
    search_fields = ("topic",)
    ordering = ("-id",)


@admin.register(Lease)
class LeaseAdmin(ReadOnlyAdmin[Lease]):
    list_display = ("name", "holder", "token", "expires_at")
    search_fields = ("name", "holder")
    ordering = ("name",)


@admin.register(ControllerState)
class ControllerStateAdmin(ReadOnlyAdmin[ControllerState]):
    list_display = ("name", "started_at", "succeeded_at", "failures", "error", "runs")
    search_fields = ("name", "error")
    ordering = ("name",)
