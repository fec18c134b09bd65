"""REST base classes: bounded parsers, strict serializers and queries, public ids, view sets.

A field or query parameter that is not known is refused rather than ignored: a misspelt ``learning_rate``
would otherwise train with the default. Body sizes are checked against ``Content-Length`` before anything is
read; a request without one has no body under WSGI.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import IO, Any, ClassVar, Concatenate, ParamSpec, TypeVar

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db.models import Model, QuerySet
from django.http import Http404, QueryDict, StreamingHttpResponse
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, mixins, serializers, status, viewsets
from rest_framework.exceptions import ValidationError
from rest_framework.generics import get_object_or_404
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser, JSONParser, MultiPartParser
from rest_framework.permissions import AllowAny
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.domain.common.name_validation import is_name_field, normalize_name
from controlplane.domain.common.resources import format_bytes
from controlplane.persistence.transactions import dry_run
from controlplane.web.forms import validate_name
from controlplane.web.pagination import KeysetPagination
from controlplane.web.references import resolve_reference
from controlplane.web.watch import MEDIA_TYPE as EVENT_STREAM
from controlplane.web.watch import PARAMETERS as WATCH_PARAMETERS
from controlplane.web.watch import EventStreamRenderer, is_watch, watch_response


class ViewSchema(AutoSchema):
    """Reads what views declare: ``tag``, and ``queries`` and ``summaries`` by action or method.

    It is the default schema class, and stands before the first ``extend_schema``, which imports it.
    """

    def get_tags(self) -> list[str]:
        return [self.view.tag] if hasattr(self.view, "tag") else super().get_tags()

    def get_summary(self) -> str | None:
        return self._of_action("summaries") or super().get_summary()

    def get_override_parameters(self) -> list[Any]:
        query = self._of_action("queries")
        return [*super().get_override_parameters(), *([query] if query else [])]

    def _of_action(self, declaration: str) -> Any:
        action = getattr(self.view, "action", self.method.lower())
        return getattr(self.view, declaration, {}).get(action)


#: Boundaries, headers and the small fields beside a file.
_FORM_OVERHEAD = 1024 * 1024
#: Digits of a Content-Length.
_LONGEST_LENGTH = 18


class BodyTooLarge(exceptions.APIException):
    """The body is larger than this address takes."""

    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_code = "too-large"

    def __init__(self, *, size: int, limit: int) -> None:
        super().__init__(
            f"the body has {format_bytes(size)}; at most {format_bytes(limit)} are taken here"
        )


def content_length(headers: Mapping[str, str]) -> int | None:
    """Bytes of the body as announced; None where nothing is.

    :raises ParseError: if it is no number.
    """
    announced = headers.get("Content-Length") or ""
    if not announced:
        return None
    if not announced.isdecimal() or len(announced) > _LONGEST_LENGTH:
        message = f"Content-Length must be a whole number, got {announced[:40]!r}"
        raise exceptions.ParseError(message)
    return int(announced)


def require_body_within(parser_context: Mapping[str, Any] | None, *, limit: int) -> None:
    """:raises BodyTooLarge: if the request announces more than ``limit`` bytes."""
    request = (parser_context or {}).get("request")
    size = content_length(request.headers) if request is not None else None
    if size is not None and size > limit:
        raise BodyTooLarge(size=size, limit=limit)


class BoundedJSONParser(JSONParser):
    """Parses JSON that the database can store."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """:raises ParseError: if it is not JSON, or has a text or number that cannot be stored."""
        require_body_within(parser_context, limit=settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
        try:
            value = super().parse(stream, media_type, parser_context)
        except RecursionError:
            raise exceptions.ParseError("the JSON is nested too deeply") from None
        _check_values(value)
        return value


def _check_values(value: Any) -> None:
    """PostgreSQL stores neither NUL nor half of a surrogate pair, in a column or inside of JSON.

    Nor does JSON know infinity, which is what Python reads where an exponent is too large.
    """
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, str):
            if "\0" in each or any("\ud800" <= character <= "\udfff" for character in each):
                raise exceptions.ParseError(
                    "a text has a NUL (\\u0000) or half of a surrogate pair (\\ud800 to \\udfff)"
                )
        elif isinstance(each, float) and not math.isfinite(each):
            raise exceptions.ParseError("a number is too large to be kept (beyond 1.8e308)")
        elif isinstance(each, Mapping):
            pending.extend(each)
            pending.extend(each.values())
        elif isinstance(each, list):
            pending.extend(each)


class BoundedMultiPartParser(MultiPartParser):
    """A form with one file of at most ``NINEFOLD_UPLOAD_LIMIT`` bytes."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        require_body_within(parser_context, limit=settings.NINEFOLD_UPLOAD_LIMIT + _FORM_OVERHEAD)
        return super().parse(stream, media_type, parser_context)


M = TypeVar("M", bound=Model)
T = TypeVar("T")

#: A public id, as ``controlplane.persistence.models.new_uid`` creates it.
UID = "[0-9a-f]{32}"
#: What fits an integer column.
LARGEST_INTEGER = 2**31 - 1


def _wrong_json_type_errors(field: serializers.Field[Any, Any, Any, Any], given: Any) -> Any:
    """What DRF would coerce: ``"yes"`` to true, ``"8"`` to 8, 8 to ``"8"``.

    Returns the field's errors: a list of messages, or one such list per place in a list; or None.
    """
    if isinstance(field, serializers.ListField) and isinstance(given, list):
        places = {
            place: _wrong_json_type_errors(field.child, each) for place, each in enumerate(given)
        }
        return {place: errors for place, errors in places.items() if errors} or None
    fits: tuple[type, ...]
    match field:
        case serializers.BooleanField():
            fits = (bool,)
        case serializers.IntegerField() | serializers.FloatField():
            fits = () if isinstance(given, bool) else (int, float)
        case serializers.CharField():
            fits = (str,)
        case _:
            return None
    return None if given is None or isinstance(given, fits) else [field.error_messages["invalid"]]


class StrictSerializer(serializers.Serializer[T]):
    """Refuses fields that it does not know, and values of another JSON type than the field's."""

    #: Whether the values come from JSON, which has types; a query string has only text.
    typed: ClassVar[bool] = True

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            known = ", ".join(self.fields) or "none"
            unknown = {
                str(name): [f"unknown field; known fields: {known}"]
                for name in data
                if name not in self.fields
            }
            if unknown:
                raise ValidationError(unknown)
            if self.typed and not isinstance(data, QueryDict):
                wrong = {
                    name: _wrong_json_type_errors(self.fields[name], data[name]) for name in data
                }
                wrong = {name: errors for name, errors in wrong.items() if errors}
                if wrong:
                    raise ValidationError(wrong)
        values = super().to_internal_value(data)
        for name, value in values.items():
            if isinstance(value, str) and is_name_field(name):
                values[name] = normalize_name(value)
        return values

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        fields = super().get_fields()
        for name, field in fields.items():
            if isinstance(field, serializers.CharField) and is_name_field(name):
                field.validators.append(validate_name)
        return fields


class ChangeSerializer(StrictSerializer[T]):
    """A change of an object, with the fields of its creation: those that are left out stay as they are."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        fields = super().get_fields()
        for field in fields.values():
            field.required, field.default = False, serializers.empty
        return fields


class QuerySerializer(StrictSerializer[Any]):
    """The query parameters of one address. This one takes none."""

    typed = False

    @classmethod
    def read(cls, request: Request, *, beside: Iterable[str] = ()) -> dict[str, Any]:
        """The parameters as values, without those named in ``beside``, which others read.

        :raises ValidationError: if a parameter is unknown, given twice or not what it should be.
        """
        query = cls(data={}, context={"request": request})
        ignored = {*beside, *(_dry_run_parameters(request) - query.fields.keys())}
        given: dict[str, Any] = {}
        for name, values in request.query_params.lists():
            if name in ignored:
                continue
            several = isinstance(query.fields.get(name), serializers.MultipleChoiceField)
            if len(values) > 1 and not several:
                raise ValidationError({name: ["give it once"]})
            given[name] = values if several else values[-1]
        query.initial_data = given
        query.is_valid(raise_exception=True)
        return dict(query.validated_data)


V = TypeVar("V")
P = ParamSpec("P")
Handler = Callable[Concatenate[V, Request, P], Response]

_SUPPORTS_DRY_RUN = "supports_dry_run"


class DryRunQuery(QuerySerializer):
    dry_run = serializers.BooleanField(
        default=False,
        help_text="Validate the request and the permissions, and return the response without changing anything. "
        "Uids in it are not those of a later request.",
    )


def supports_dry_run(handler: Handler[V, P]) -> Handler[V, P]:
    """Let a handler accept ``?dry_run=true``, which does everything and rolls it back.

    Apply it above ``@idempotent``. Other handlers refuse the parameter, as every unknown one. A service with
    effects outside the database leaves them out where ``is_dry_run()``.
    """

    @functools.wraps(handler)
    def run(view: V, request: Request, /, *args: P.args, **kwargs: P.kwargs) -> Response:
        others = request.query_params.keys() - DryRunQuery().fields.keys()
        if not DryRunQuery.read(request, beside=others)["dry_run"]:
            return handler(view, request, *args, **kwargs)
        with dry_run():
            return handler(view, request, *args, **kwargs)

    setattr(run, _SUPPORTS_DRY_RUN, True)
    return extend_schema(parameters=[DryRunQuery])(run)


def _dry_run_parameters(request: Request) -> frozenset[str]:
    """The parameters that :func:`supports_dry_run` reads for the handler of the request."""
    view = (request.parser_context or {}).get("view")
    handler = getattr(view, (request.method or "").lower(), None)
    supported = getattr(handler, _SUPPORTS_DRY_RUN, False)
    return frozenset(DryRunQuery().fields) if supported else frozenset()


class ListFilters(QuerySerializer):
    """Query parameters that narrow a list."""

    #: Parameter → lookup of the rows.
    lookups: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def apply(cls, rows: QuerySet[M, Any], given: Mapping[str, Any]) -> QuerySet[M, Any]:
        """The rows that fit all parameters that were given."""
        for name, lookup in cls.lookups.items():
            if name in given:
                rows = rows.filter(**{lookup: given[name]})
        return rows


class ObjectReference(serializers.Serializer[Model]):
    """Another object, in brief."""

    uid = serializers.CharField()
    name = serializers.CharField(source="__str__")


class EnumField(serializers.ChoiceField):
    """The value of a member of an enumeration."""

    def __init__(self, members: type[Enum], **options: Any) -> None:
        super().__init__(choices=[(each.value, each.value) for each in members], **options)


class TextListField(serializers.ListField):
    """A list of texts, for responses."""

    child = serializers.CharField()


class VisibleUidField(serializers.SlugRelatedField[M]):
    """Something that the caller may see, by uid or, as ``controlplane.web.references`` has it, by name."""

    def __init__(self, *, visible: Callable[[Any], QuerySet[M]], **options: Any) -> None:
        self._visible = visible
        # DRF needs a queryset for a writable field; the rows depend on the caller.
        super().__init__(slug_field="uid", queryset=visible(AnonymousUser()), **options)

    def get_queryset(self) -> QuerySet[M]:
        return self._visible(self.context["request"].user)

    def run_validation(self, data: Any = serializers.empty) -> Any:
        # DRF takes an empty text for null, which means something else where it is allowed.
        return self.to_internal_value(data) if data == "" else super().run_validation(data)

    def to_internal_value(self, data: Any) -> M:
        """:raises ValidationError: if it names nothing, or several things, that the caller may see."""
        return resolve_reference(self.get_queryset(), data)


# Without a docstring, which would become the description of the operations.
class StrictView(APIView):
    #: Group of the operations in the API schema.
    tag: ClassVar[str]
    parser_classes: tuple[type[BaseParser], ...] = (BoundedJSONParser,)
    #: Action of a view set, or method → parameters that it takes; others take none.
    queries: ClassVar[Mapping[str, type[QuerySerializer]]] = {}
    #: The parameters of this request, checked.
    query: dict[str, Any]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """:raises ValidationError: if a parameter is unknown or not what it should be."""
        super().initial(request, *args, **kwargs)
        beside = self._parameters_read_elsewhere(request)
        self.query = self._query_serializer_class().read(request, beside=beside)

    def _parameters_read_elsewhere(self, request: Request) -> frozenset[str]:
        return frozenset()

    def _query_serializer_class(self) -> type[QuerySerializer]:
        method = (self.request.method or "").lower()
        action = getattr(self, "action", "get" if method == "head" else method)
        return self.queries.get(action or "", QuerySerializer)

    def validated_body(
        self, serializer_class: type[serializers.BaseSerializer[Any]], **options: Any
    ) -> dict[str, Any]:
        """The body, as that serializer with these options reads it.

        :raises ValidationError: if it is not what it should be.
        """
        context = self._body_context()
        serializer = serializer_class(data=self.request.data, context=context, **options)
        serializer.is_valid(raise_exception=True)
        return dict(serializer.validated_data)

    def _body_context(self) -> Mapping[str, Any]:
        return {"request": self.request}


class ResourceViewSet(viewsets.GenericViewSet[M], StrictView):
    """Rows by public name. ``queries`` says which parameters each action takes."""

    lookup_field = "uid"
    lookup_value_regex = UID
    pagination_class: type[KeysetPagination] | None = KeysetPagination
    #: Action → summary, where the action has no handler of its own to say it.
    summaries: ClassVar[Mapping[str, str]] = {}
    #: User → rows that the user may see.
    visible: ClassVar[staticmethod[..., QuerySet[Any]]]
    #: Of all actions but the list, if it differs from ``serializer_class``.
    detail_serializer_class: ClassVar[type[serializers.BaseSerializer[Any]] | None] = None
    #: Whether the list can be watched: a trigger logs the changes of its rows.
    watchable: ClassVar[bool] = True
    #: Field that the log of changes identifies a row by.
    watch_key: ClassVar[str] = "uid"
    #: Whether rows are only added, so that a watch need not remember which ones there are.
    append_only: ClassVar[bool] = False

    def get_queryset(self) -> QuerySet[M, Any]:
        return self.visible(self.request.user)

    def get_serializer_class(self) -> type[serializers.BaseSerializer[Any]]:
        if self.action != "list" and self.detail_serializer_class is not None:
            return self.detail_serializer_class
        return super().get_serializer_class()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if self.action == "list" and self.watchable and is_watch(request):
            # Called instead of ``list``, whose filters it shares.
            self.get = self._watch

    def _parameters_read_elsewhere(self, request: Request) -> frozenset[str]:
        if self.action != "list":
            return frozenset()
        if self.watchable and is_watch(request):
            return WATCH_PARAMETERS
        return KeysetPagination.parameters if self.pagination_class is not None else frozenset()

    def _body_context(self) -> Mapping[str, Any]:
        return self.get_serializer_context()

    def watched_rows(self) -> Sequence[QuerySet[Any, Any]]:
        """Return the rows of the list that a watch reads: one query for each table of the objects."""
        return [self.filter_queryset(self.get_queryset())]

    def _watch(self, request: Request, *args: Any, **kwargs: Any) -> StreamingHttpResponse:
        return watch_response(self)

    def get_renderers(self) -> list[BaseRenderer]:
        renderers = super().get_renderers()
        # While the schema is generated, there is no request.
        accept = getattr(self.request, "headers", {}).get("Accept", "")
        if self.watchable and self.action == "list" and EVENT_STREAM in accept:
            renderers.append(EventStreamRenderer())
        return renderers

    def filter_queryset(self, queryset: QuerySet[M, Any]) -> QuerySet[M, Any]:
        rows = super().filter_queryset(queryset)
        query_class = self._query_serializer_class()
        if self.action == "list" and issubclass(query_class, ListFilters):
            return query_class.apply(rows, self.query)
        return rows


# Without a docstring, which would become the description of the operations.
class CollectionViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ResourceViewSet[M]):
    pass


class PartsViewSet(mixins.ListModelMixin, ResourceViewSet[M]):
    """The parts of one object, whose uid is in the path, as one list."""

    pagination_class = None

    @property
    def whole_uid(self) -> str:
        # While the schema is generated, there is none.
        return str(self.kwargs.get("uid", ""))

    def visible_wholes(self) -> QuerySet[Any, Any]:
        """Return the objects that the caller may see the parts of."""
        raise NotImplementedError

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """:raises Http404: if the caller may not see the object."""
        super().initial(request, *args, **kwargs)
        get_object_or_404(self.visible_wholes(), uid=self.whole_uid)


class IgnoreAcceptHeaderNegotiation(DefaultContentNegotiation):
    """Ignores the Accept header; for endpoints with one response format."""

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        return renderers[0], renderers[0].media_type


@extend_schema(exclude=True)
class UnknownApiPath(APIView):
    """Answers for every address under ``/api`` that is none."""

    authentication_classes = ()
    permission_classes = (AllowAny,)
    content_negotiation_class = IgnoreAcceptHeaderNegotiation

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """:raises Http404: always, whatever the method."""
        raise Http404

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        raise Http404
