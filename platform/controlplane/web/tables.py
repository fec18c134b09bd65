"""Lists: filters and order live in the address, pages follow a key, and the same rows come as CSV.

A list of any length costs the same: the next page begins after the last row of this one, by the value of
the column that is sorted by and then by primary key, and nothing is counted beyond a thousand.

    class JobFilter(FilterForm):
        state = forms.ChoiceField(label=_("State"), choices=…, required=False)
        text = forms.CharField(label=_("Name"), required=False)
        lookups = {"state": "state", "text": "name__icontains"}

    table = Table(request, rows, columns=COLUMNS, filters=JobFilter(request.GET))
    if table.is_csv_request:
        return table.csv(filename="jobs.csv")
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

from django.core import signing
from django.core.exceptions import FieldDoesNotExist
from django.db.models import F, Model, Q, QuerySet
from django.http import HttpRequest, QueryDict, StreamingHttpResponse
from django.utils.functional import Promise
from django.utils.text import Truncator
from django.utils.translation import gettext as _

from controlplane.web import downloads
from controlplane.web.forms import StyledForm

Row = TypeVar("Row", bound=Model)
Label = str | Promise

PAGE_SIZE = 25
#: Counting stops here: the title shows "1,000+".
MAX_COUNTED = 1000
#: Query parameters of the table itself.
SORT, AFTER, FORMAT = "sort", "after", "format"
#: Values of empty filter fields.
_EMPTY_VALUES: tuple[object, ...] = (None, "", False, [])


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """One column of a list; ``key`` is its name in query parameters."""

    key: str
    #: Empty for a column of buttons.
    label: Label
    #: What the rows are ordered by: a field, a path of fields or an annotation. Empty: cannot be sorted by.
    #: ``pk`` sorts by creation, and is the cheapest.
    sort: str = ""
    numeric: bool = False
    #: The row's value in the CSV; without it the attribute named ``key``. A column without a label is left out.
    csv: Callable[[Any], object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHeading:
    """A column as the table's head shows it."""

    key: str
    label: Label
    numeric: bool
    #: URL of a click; empty if not sortable.
    href: str
    #: ``ascending``, ``descending``, or empty where the rows are ordered by another column.
    direction: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkAction:
    """Something to do to all chosen rows: a POST to ``href`` with their uids as ``uid``."""

    name: str
    label: Label
    href: str
    #: Confirmation text.
    warning: Label
    picture: str = "check"
    style: str = "btn-danger"
    #: Label of an optional note, sent as ``note_<name>``; empty: no note.
    note: Label = ""


class FilterForm(StyledForm):
    """What a list can be narrowed by; every field is optional, and a wrong value is left out with a hint."""

    #: Field of the form → lookup of the rows, for those that are as simple as that.
    lookups: ClassVar[Mapping[str, str]] = {}

    def __init__(self, data: QueryDict | None = None, **kwargs: Any) -> None:
        super().__init__(data, **{"auto_id": "filter-%s", "label_suffix": "", **kwargs})
        for field in self.fields.values():
            field.required = False

    def chosen(self, name: str) -> Any:
        """The valid value of that field, or None where nothing was chosen."""
        return self._valid_values.get(name)

    def apply(self, rows: QuerySet[Row]) -> QuerySet[Row]:
        """The rows that match every chosen value."""
        conditions = {
            lookup: value
            for name, lookup in self.lookups.items()
            if (value := self.chosen(name)) is not None
        }
        return rows.filter(**conditions)

    @property
    def invalid_filters(self) -> list[str]:
        """Return a message for each invalid filter value."""
        return [
            _("Filter “%(label)s” ignored: %(error)s")
            % {"label": self.fields[name].label or name, "error": " ".join(map(str, errors))}
            for name, errors in self.errors.items()
            if name in self.fields
        ]

    @property
    def in_use(self) -> bool:
        return bool(self._valid_values)

    @cached_property
    def _valid_values(self) -> dict[str, Any]:
        """What is valid and not empty, whether or not the rest of the form is valid."""
        self.is_valid()
        values = {
            name: list(value) if isinstance(value, QuerySet) else value
            for name, value in self.cleaned_data.items()
        }
        return {name: value for name, value in values.items() if value not in _EMPTY_VALUES}


class ListTable(Generic[Row]):
    """One page of rows with headings and links. Queries are lazy.

    ``default_sort`` and ``?sort=`` name a column by its key, with ``-`` for descending; where no column has
    the default's key, the newest row comes first.
    """

    def __init__(
        self,
        request: HttpRequest,
        rows: QuerySet[Row],
        *,
        columns: Sequence[TableColumn],
        filters: FilterForm | type[FilterForm] | None = None,
        default_sort: str = "-created_at",
        size: int = PAGE_SIZE,
        bulk: Sequence[BulkAction] = (),
    ) -> None:
        self.filters = filters(request.GET) if isinstance(filters, type) else filters
        self.bulk = tuple(bulk)
        self._request = request
        self._declared = tuple(columns)
        self._size = size
        self._sortable = {column.key: column for column in columns if column.sort}
        self._requested_sort = request.GET.get(SORT, "")
        known = self._requested_sort.removeprefix("-") in self._sortable
        self._sort = self._requested_sort if known else default_sort
        self._matching = self.filters.apply(rows) if self.filters else rows

    @property
    def rows(self) -> list[Row]:
        return self._page_rows[0]

    @property
    def columns(self) -> list[TableHeading]:
        return [self._column_heading(column) for column in self._declared]

    @property
    def next_href(self) -> str:
        """The page after this one; empty on the last."""
        rows, more = self._page_rows
        return self._table_url({AFTER: self._row_cursor(rows[-1])}) if more else ""

    @property
    def first_href(self) -> str:
        """The first page; empty on the first."""
        return self._table_url({AFTER: ""}) if self._requested_cursor is not None else ""

    @property
    def csv_href(self) -> str:
        return self._table_url({AFTER: "", FORMAT: "csv"})

    @property
    def clear_href(self) -> str:
        """The same list without filters."""
        names = list(self.filters.fields) if self.filters else []
        return self._table_url({AFTER: "", **dict.fromkeys(names, "")})

    @property
    def saved_query(self) -> str:
        """Return filters and order as a query string without its question mark, for saved filters."""
        return self._table_url({AFTER: "", FORMAT: ""}).removeprefix("?")

    @property
    def carried_parameters(self) -> list[tuple[str, str]]:
        """Parameters that the form of filters must carry along: order, tab, whatever else the page has."""
        own = {AFTER, FORMAT, *(self.filters.fields if self.filters else ())}
        return [
            (name, value)
            for name, values in self._request.GET.lists()
            if name not in own
            for value in values
        ]

    @property
    def filtered(self) -> bool:
        return bool(self.filters and self.filters.in_use)

    @property
    def ignored(self) -> list[str]:
        """Return messages about invalid query parameters."""
        hints = self.filters.invalid_filters if self.filters else []
        if self._requested_sort and self._requested_sort != self._sort:
            requested = Truncator(self._requested_sort).chars(40)
            hint = _("Sort order “%(asked)s” does not exist. The default order is shown.")
            hints = [*hints, hint % {"asked": requested}]
        return hints

    @cached_property
    def count_text(self) -> str:
        """How many rows match: ``12``, or ``1,000+``. Takes a query only where it is not known already."""
        rows, more = self._page_rows
        if self._requested_cursor is None and not more:
            return str(len(rows))
        counted = self._matching.order_by().values("pk")[: MAX_COUNTED + 1].count()
        return f"{MAX_COUNTED:,}+" if counted > MAX_COUNTED else f"{counted:,}"

    @property
    def is_csv_request(self) -> bool:
        return self._request.GET.get(FORMAT) == "csv"

    def csv(self, *, filename: str) -> StreamingHttpResponse:
        """All matching rows in the page's order, sent as they are read."""
        rows = self._ordered_rows.iterator(chunk_size=500)
        return csv_table(rows, columns=self._declared, filename=filename)

    @cached_property
    def _page_rows(self) -> tuple[list[Row], bool]:
        """The rows, and whether others follow."""
        rows = self._ordered_rows
        if self._requested_cursor is not None:
            rows = rows.filter(self._after_cursor_filter(self._requested_cursor))
        found = list(rows[: self._size + 1])
        return found[: self._size], len(found) > self._size

    @cached_property
    def _requested_cursor(self) -> CursorPosition | None:
        return decode_table_cursor(self._request.GET.get(AFTER, ""), order=self._sort)

    @property
    def _sort_field(self) -> str:
        column = self._sortable.get(self._sort.removeprefix("-"))
        return column.sort if column else "pk"

    @property
    def _is_descending(self) -> bool:
        return self._sort.startswith("-")

    @property
    def _ordered_rows(self) -> QuerySet[Row]:
        """By value with empty ones last, then by primary key, so that every row has one place."""
        tie = "-pk" if self._is_descending else "pk"
        if self._sort_field == "pk":
            return self._matching.order_by(tie)
        # An unnecessary NULLS LAST would keep PostgreSQL from using an index.
        last = True if _is_nullable(self._matching.model, self._sort_field) else None
        value = F(self._sort_field)
        order = value.desc(nulls_last=last) if self._is_descending else value.asc(nulls_last=last)
        return self._matching.order_by(order, tie)

    def _after_cursor_filter(self, edge: CursorPosition) -> Q:
        further = "lt" if self._is_descending else "gt"
        behind = Q(**{f"pk__{further}": edge.key})
        if self._sort_field == "pk":
            return behind
        if edge.value is None:
            return Q(**{f"{self._sort_field}__isnull": True}) & behind
        beyond = Q(**{f"{self._sort_field}__{further}": edge.value})
        beyond |= Q(**{self._sort_field: edge.value}) & behind
        if _is_nullable(self._matching.model, self._sort_field):
            beyond |= Q(**{f"{self._sort_field}__isnull": True})
        return beyond

    def _row_cursor(self, row: Row) -> str:
        value = None if self._sort_field == "pk" else _value_at(row, self._sort_field)
        return encode_table_cursor(CursorPosition(value=value, key=row.pk), order=self._sort)

    def _column_heading(self, column: TableColumn) -> TableHeading:
        current = self._sort.removeprefix("-") == column.key
        href, direction = "", ""
        if column.sort:
            # Numeric columns sort descending first.
            descending = not self._is_descending if current else column.numeric
            href = self._table_url(
                {SORT: f"-{column.key}" if descending else column.key, AFTER: ""}
            )
        if current and column.sort:
            direction = "descending" if self._is_descending else "ascending"
        return TableHeading(
            key=column.key,
            label=column.label,
            numeric=column.numeric,
            href=href,
            direction=direction,
        )

    def _table_url(self, changes: Mapping[str, str]) -> str:
        parameters = self._request.GET.copy()
        for name, value in changes.items():
            if value:
                parameters[name] = value
            else:
                parameters.pop(name, None)
        return f"?{parameters.urlencode()}"


def csv_table(
    rows: Iterable[Any], *, columns: Sequence[TableColumn], filename: str
) -> StreamingHttpResponse:
    """The rows as a CSV download with the labelled columns, sent as they are read."""
    shown = [column for column in columns if column.label]
    lines = (
        [column.csv(row) if column.csv else getattr(row, column.key, "") for column in shown]
        for row in rows
    )
    head = [str(column.label) for column in shown]
    return downloads.csv_download(filename=filename, head=head, lines=lines)


def _value_at(row: Model, path: str) -> Any:
    value: Any = row
    for name in path.split("__"):
        value = getattr(value, name, None)
    return value


def _is_nullable(model: type[Model], path: str) -> bool:
    """Whether a row may have no value there; an annotation may."""
    for name in path.split("__"):
        try:
            field = model._meta.get_field(name)
        except FieldDoesNotExist:
            return True
        if getattr(field, "null", True):
            return True
        if field.related_model and not isinstance(field.related_model, str):
            model = field.related_model
    return False


_SALT = "table"
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorPosition:
    """The last row of a page."""

    #: Of the column that the rows are ordered by.
    value: Any
    key: int


def encode_table_cursor(position: CursorPosition, *, order: str) -> str:
    """The cursor behind that row, for rows in that order only.

    :raises TypeError: if the value's type has no place in a cursor.
    """
    return signing.dumps([order, *_encode_value(position.value), position.key], salt=_SALT)


def decode_table_cursor(text: str, *, order: str) -> CursorPosition | None:
    """The position; None where there is none, it was changed, or it belongs to another order."""
    try:
        written_for, kind, value, key = signing.loads(text, salt=_SALT)
    except (signing.BadSignature, ValueError):
        return None
    return (
        CursorPosition(value=_decode_value(kind, value), key=key) if written_for == order else None
    )


def _encode_value(value: Any) -> tuple[str, Any]:
    if value is None or isinstance(value, bool | int | float | str):
        return "", value
    if isinstance(value, datetime):
        return "at", value.isoformat()
    if isinstance(value, date):
        return "day", value.isoformat()
    if isinstance(value, timedelta):
        return "span", value // _MICROSECOND
    if isinstance(value, Decimal):
        return "decimal", str(value)
    raise TypeError(f"rows cannot be paged by a {type(value).__name__}; sort by another field")


def _decode_value(kind: str, value: Any) -> Any:
    match kind:
        case "at":
            return datetime.fromisoformat(value)
        case "day":
            return date.fromisoformat(value)
        case "span":
            return value * _MICROSECOND
        case "decimal":
            return Decimal(value)
        case _:
            return value
