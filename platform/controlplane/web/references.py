"""References to objects in request bodies and query parameters: by uid, or by name.

::

    vision                  a team, by its slug
    qwen3-8b@3              a version of a model or dataset
    vision/tickets@2        the same with its team, where several teams have a dataset of that name
    cluster-a/node-17       a node with its cluster

An api package registers how objects of its models are named; ``controlplane.web.rest.VisibleUidField`` resolves
them. Only objects that the caller may see are considered: any other is as good as absent, also as a candidate.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db.models import Model, Q, QuerySet
from rest_framework.exceptions import ValidationError

from controlplane.domain.common.reasons import NONE, Reason

M = TypeVar("M", bound=Model)

_UID = re.compile(r"[0-9a-f]{32}")
_REFERENCE = re.compile(
    r"(?:(?P<owner>[-.\w]{1,120})/)?(?P<name>[-.\w]{1,120})(?:@(?P<version>[^@/\0]{0,40}))?"
)
#: Digits of a version that fits an integer column.
_MOST_DIGITS = 9
#: Versions and candidates that an error lists.
_MOST_LISTED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceNaming:
    """How objects of a model are named."""

    #: What it is, as a reason that is translated: ``Reason("reference.noun.team", "team")``.
    noun: Reason
    #: A reference as documentation and errors show it.
    example: str
    #: Lookup of the name.
    name: str = "name"
    #: Lookup of the slug or name of the owner, which tells objects of one name apart; empty: names are unique.
    owner: str = ""
    #: Lookup of the number after ``@``; empty: objects without versions.
    version: str = ""


_DEFAULT = ReferenceNaming(
    noun=Reason("reference.noun.object", "object"), example="0f4f6b0c7a4e4d5b9d3c1c8f2f6f5a10"
)
_namings: dict[type[Model], ReferenceNaming] = {}


def register_reference_naming(model: type[Model], naming: ReferenceNaming) -> None:
    """Let requests refer to objects of the model by name."""
    _namings[model] = naming


def reference_naming(model: type[Model]) -> ReferenceNaming | None:
    """How objects of the model are named; None if by uid only."""
    return _namings.get(model)


def reason_error(reason: Reason) -> ValidationError:
    """A validation error that keeps the reason.

    DRF copies the text and the code of an error from one level to the next and drops everything else, so the
    reason travels as the code; ``controlplane.web.problem_details`` takes it from there.
    """
    return ValidationError("".join(reason), code=reason)


def resolve_reference(rows: QuerySet[M], text: object) -> M:
    """The object among the rows that the text refers to.

    :raises ValidationError: if there is none, or several, or the version is missing.
    """
    naming = _namings.get(rows.model)
    if not isinstance(text, str) or not text:
        raise reason_error(
            Reason(
                "reference.not_a_string",
                "the reference must be a string such as {example}, or a uid, got {value}",
                example=(naming or _DEFAULT).example,
                value=repr(text)[:80],
            )
        )
    if _UID.fullmatch(text):
        by_uid = rows.filter(uid=text).first()
        if by_uid is not None:
            return by_uid
    parsed = _REFERENCE.fullmatch(text)
    if naming is None or parsed is None:
        raise _unknown(text, naming or _DEFAULT)
    owner, name, version = parsed.group("owner", "name", "version")
    if (owner and not naming.owner) or (version is not None and not naming.version):
        raise _unknown(text, naming)
    named = rows.filter(Q(**{naming.name: name}))
    if owner:
        named = named.filter(**{naming.owner: owner})
    return _only_match(named, text, version=version, naming=naming)


def _only_match(
    named: QuerySet[M], text: str, *, version: str | None, naming: ReferenceNaming
) -> M:
    if naming.version:
        found = list(named.order_by(f"-{naming.version}").values_list("uid", naming.version))
        if not found:
            raise _unknown(text, naming)
        fits = version and version.isdecimal() and len(version) <= _MOST_DIGITS
        wanted = [uid for uid, number in found if fits and number == int(version or 0)]
        if not wanted:
            raise _version_error(text, version, [number for _, number in found])
    else:
        wanted = list(named.values_list("uid", flat=True)[: _MOST_LISTED + 1])
        if not wanted:
            raise _unknown(text, naming)
    if len(wanted) > 1:
        raise _ambiguous(text, named.filter(uid__in=wanted), version=version, naming=naming)
    return named.get(uid=wanted[0])


def _unknown(text: str, naming: ReferenceNaming) -> ValidationError:
    return reason_error(
        Reason(
            "reference.unknown",
            "{noun} {value} does not exist or is not visible to you; give a reference such as {example}, or a uid",
            noun=naming.noun,
            value=text[:200],
            example=naming.example,
        )
    )


def _version_error(text: str, version: str | None, numbers: Iterable[int]) -> ValidationError:
    known = list(dict.fromkeys(numbers))
    listed = ", ".join(str(number) for number in known[:_MOST_LISTED])
    if not version:
        base = text.removesuffix("@")
        return reason_error(
            Reason(
                "reference.version.missing",
                "{value} needs a version, for example {example}; latest versions: {versions}",
                value=base,
                example=f"{base}@{known[0]}",
                versions=listed,
            )
        )
    return reason_error(
        Reason(
            "reference.version.unknown",
            "{value} has no version {version}; latest versions: {versions}",
            value=text.partition("@")[0],
            version=version,
            versions=listed,
        )
    )


def _ambiguous(
    text: str, found: QuerySet[Any], *, version: str | None, naming: ReferenceNaming
) -> ValidationError:
    """Candidates with their owners; one without an owner, which all teams share, by its uid."""
    suffix = f"@{version}" if version else ""
    base = text.partition("@")[0].rpartition("/")[2]
    candidates = [
        f"{owner}/{base}{suffix}" if owner else uid
        for uid, owner in found.order_by("uid").values_list("uid", naming.owner or naming.name)
    ]
    return reason_error(
        Reason(
            "reference.ambiguous",
            "{value} is the name of several objects; give one of {candidates}",
            value=text,
            candidates=", ".join(candidates[:_MOST_LISTED]) or NONE,
        )
    )
