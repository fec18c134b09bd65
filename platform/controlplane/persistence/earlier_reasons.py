"""Migration of the English sentences that versions before 0.2 stored as reasons.

``earlier_reasons.json`` has their texts, ``{0}``, ``{1}``… for what was filled in, with the code and the names
of the parameters that each became. Only migrations read it. A text that none of them fits becomes the detail
of a reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations import AlterField
from psycopg import sql

from controlplane.domain.common.reasons import LIST_CODE
from controlplane.persistence.reasons import ReasonField
from controlplane.persistence.transactions import check_deferred_constraints

_FILLED = re.compile(r"\{(\d+)\}")
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,15})")
#: Nesting depth of reasons as parameters of reasons.
_DEEPEST = 3
_BATCH = 1000
#: Cost of a parameter that is probably none, and of text that is none of our messages beside one that is.
_DOUBTFUL, _UNKNOWN = 2, 3
#: Characters, and joined messages, of a text that is read; longer ones are output of programs.
_LONGEST, _MOST_JOINED = 1000, 8
#: Characters of a text besides its parameters and spaces that make it recognizable.
_DISTINCTIVE = 8
_Found: TypeAlias = tuple[int, dict[str, Any]]


class AlterToReason(AlterField):
    """Change a text column to a :class:`~controlplane.persistence.reasons.ReasonField` and convert its texts."""

    reversible = False

    def __init__(self, model_name: str, name: str) -> None:
        super().__init__(model_name, name, ReasonField(blank=True, default=str))

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: Any,
        to_state: Any,
    ) -> None:
        del from_state
        meta = to_state.apps.get_model(app_label, self.model_name)._meta
        names = {
            "table": sql.Identifier(meta.db_table),
            "column": sql.Identifier(meta.get_field(self.name).column),
        }
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(sql.SQL(_ALTER).format(**names).as_string(cursor.connection))
            cursor.execute(sql.SQL(_TEXTS).format(**names).as_string(cursor.connection))
            texts = [text for (text,) in cursor.fetchall()]
            converted = [
                {"detail": text, "reason": reason}
                for text in texts
                if (reason := earlier_reason(text)) is not None
            ]
            update = sql.SQL(_CONVERT).format(**names).as_string(cursor.connection)
            for start in range(0, len(converted), _BATCH):
                cursor.execute(update, [json.dumps(converted[start : start + _BATCH])])
            if converted:
                # Rows rewritten by this transaction have their foreign keys checked again at its end, and a
                # table with pending checks cannot be altered again.
                check_deferred_constraints()


_ALTER = """
    ALTER TABLE {table} ALTER COLUMN {column} DROP DEFAULT, ALTER COLUMN {column} TYPE jsonb
    USING CASE {column} WHEN '' THEN '{{}}'::jsonb ELSE jsonb_build_object('detail', {column}) END
"""
_TEXTS = "SELECT DISTINCT {column}->>'detail' FROM {table} WHERE {column} ? 'detail'"
_CONVERT = """
    UPDATE {table} SET {column} = converted.reason
    FROM jsonb_to_recordset(%s::jsonb) AS converted (detail text, reason jsonb)
    WHERE {table}.{column}->>'detail' = converted.detail
"""


@dataclass(frozen=True, slots=True)
class _EarlierText:
    pattern: re.Pattern[str]
    prefix: str
    code: str
    #: Names of the parameters in the order of the text.
    names: tuple[str, ...]
    #: Whether there is enough text besides the parameters that a doubtful match is still one.
    distinctive: bool


def earlier_reason(text: str) -> dict[str, Any] | None:
    """Return the stored form of the reason that the text was; None if it is not one of ours."""
    if len(text) > _LONGEST or text.count("; ") >= _MOST_JOINED:
        return None
    found = _EarlierTextParser().of(text, depth=0)
    return found[1] if found else None


class _EarlierTextParser:
    """The most plausible reading of a text, of those that fit, with its cost.

    A parameter is a name or a number; only the last may be text of foreign origin or another reason. Any other
    parameter with a space is doubtful, and so is text with a semicolon: two messages may have been joined.
    """

    def __init__(self) -> None:
        self._fixed, self._filled = _earlier_texts()
        self._known: dict[tuple[str, int], _Found | None] = {}

    def of(self, text: str, *, depth: int) -> _Found | None:
        key = (text, depth)
        if key not in self._known:
            self._known[key] = self._parse_uncached(text, depth)
        return self._known[key]

    def _parse_uncached(self, text: str, depth: int) -> _Found | None:
        if (code := self._fixed.get(text)) is not None:
            return 0, {"code": code, "params": {}}
        best = None
        for earlier in self._filled:
            if (found := self._match_template(earlier, text, depth)) is not None:
                best = min(best or found, found, key=_cost)
                if best[0] == 0:
                    return best
        for found in self._joined(text, depth):
            best = min(best or found, found, key=_cost)
        return best

    def _match_template(self, earlier: _EarlierText, text: str, depth: int) -> _Found | None:
        if not text.startswith(earlier.prefix):
            return None
        match = earlier.pattern.fullmatch(text)
        if match is None:
            return None
        total, params = 0, {}
        for name, value in zip(earlier.names, match.groups(), strict=True):
            cost, params[name] = self._parameter(value, depth, is_last=name == earlier.names[-1])
            total += cost
        if not earlier.distinctive and total >= (_DOUBTFUL if earlier.prefix else 1):
            return None
        return total, {"code": earlier.code, "params": params}

    def _parameter(self, value: str, depth: int, *, is_last: bool) -> tuple[int, Any]:
        if _NUMBER.fullmatch(value):
            return 0, int(value)
        if " " not in value:
            return 0, value
        found = self.of(value, depth=depth + 1) if depth < _DEEPEST else None
        if found is not None:
            return found[0] + (0 if is_last else _DOUBTFUL - 1), found[1]
        return (1 if is_last else _DOUBTFUL) + ("; " in value) * _UNKNOWN, value

    def _joined(self, text: str, depth: int) -> Iterator[_Found]:
        for separator in re.finditer("; ", text):
            first = self.of(text[: separator.start()], depth=depth)
            if first is None or first[1]["code"] == LIST_CODE:
                continue
            rest = text[separator.end() :]
            cost, second = self.of(rest, depth=depth) or (_UNKNOWN, rest)
            others = [second]
            if isinstance(second, dict) and second["code"] == LIST_CODE:
                others = second["params"]["reasons"]
            yield first[0] + cost, {"code": LIST_CODE, "params": {"reasons": [first[1], *others]}}


def _cost(found: _Found) -> int:
    return found[0]


@cache
def _earlier_texts() -> tuple[Mapping[str, str], tuple[_EarlierText, ...]]:
    """Codes of fixed texts, and the texts with parameters, those with the most text of their own first."""
    listed = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    fixed = {text: code for text, (code, names) in listed.items() if not names}
    filled = [(text, code, tuple(names)) for text, (code, names) in listed.items() if names]
    filled.sort(key=lambda it: -len(_FILLED.sub("", it[0])))
    return fixed, tuple(
        _EarlierText(
            pattern=_compile(text),
            prefix=text[: text.index("{")],
            code=code,
            names=tuple(names[int(place)] for place in dict.fromkeys(_FILLED.findall(text))),
            distinctive=len(_FILLED.sub("", text).replace(" ", "")) >= _DISTINCTIVE,
        )
        for text, code, names in filled
    )


def _compile(text: str) -> re.Pattern[str]:
    seen: set[str] = set()
    pattern: list[str] = []
    for place, part in enumerate(_FILLED.split(text)):
        if place % 2 == 0:
            pattern.append(re.escape(part))
        elif part in seen:
            pattern.append(f"(?P=v{part})")
        else:
            seen.add(part)
            pattern.append(f"(?P<v{part}>.*?)")
    return re.compile("".join(pattern), re.DOTALL)
