"""Translate stored English messages of services, rules and adapters into the language of the reader.

Reasons are written once, in English, and stored with the row that they explain; the reader is not known
then. A page matches the text against the message catalogue and fills the captured values into the
translation. Text without a translation, such as the error of an engine, is shown unchanged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import polib
from django.conf import settings
from django.utils.translation import get_language, to_locale

DOMAIN = "messages"
_FILLED = re.compile(r"\{(\d+)\}")
#: Nesting depth of messages as parameters of messages.
_DEEPEST = 3


@dataclass(frozen=True, slots=True)
class _MessagePattern:
    pattern: re.Pattern[str]
    translation: str

    def render(self, text: str, *, catalogue: MessageCatalog, depth: int) -> str | None:
        found = self.pattern.fullmatch(text)
        if found is None:
            return None
        values = {
            number: catalogue.quoted(found.group(f"v{number}"), depth=depth + 1)
            for number in (name[1:] for name in found.groupdict())
        }
        return _FILLED.sub(lambda place: values[place.group(1)], self.translation)


class MessageCatalog:
    """The message translations of one language."""

    def __init__(self, entries: dict[str, str]) -> None:
        self._fixed = {
            msgid: rendered for msgid, rendered in entries.items() if not _FILLED.search(msgid)
        }
        filled = [msgid for msgid in entries if msgid not in self._fixed]
        # The pattern with the most literal text is the most specific one.
        filled.sort(key=lambda msgid: -len(_FILLED.sub("", msgid)))
        self._filled = [
            _MessagePattern(_compile_pattern(msgid), entries[msgid]) for msgid in filled
        ]

    def render(self, text: str, *, depth: int = 0) -> str:
        """Return the translation, or the text itself if there is none."""
        if (fixed := self._fixed.get(text)) is not None:
            return fixed
        for message in self._filled:
            rendered = message.render(text, catalogue=self, depth=depth)
            if rendered is not None:
                return rendered
        return text

    def quoted(self, text: str, *, depth: int) -> str:
        """Return the translation of a parameter: a nested message, or a name or number, which stays."""
        return self.render(text, depth=depth) if " " in text and depth < _DEEPEST else text


def _compile_pattern(msgid: str) -> re.Pattern[str]:
    parts = _FILLED.split(msgid)
    seen: set[str] = set()
    pattern: list[str] = []
    for place, part in enumerate(parts):
        if place % 2 == 0:
            pattern.append(re.escape(part))
        elif part in seen:
            pattern.append(f"(?P=v{part})")
        else:
            seen.add(part)
            pattern.append(f"(?P<v{part}>.*?)")
    return re.compile("".join(pattern), re.DOTALL)


def path_of(locale: str) -> Path:
    """Return the path of the message catalogue of a locale."""
    return Path(settings.LOCALE_PATHS[0], locale, "LC_MESSAGES", f"{DOMAIN}.po")


@cache
def _load_catalogue(locale: str) -> MessageCatalog | None:
    path = path_of(locale)
    if not path.is_file():
        return None
    entries = polib.pofile(str(path))
    return MessageCatalog({entry.msgid: entry.msgstr for entry in entries.translated_entries()})


@lru_cache(maxsize=4096)
def _render_message(locale: str, text: str) -> str:
    catalogue = _load_catalogue(locale)
    return text if catalogue is None else catalogue.render(text)


def translate_message(text: str) -> str:
    """Return the message in the current language."""
    return _render_message(to_locale(get_language() or "en"), text) if text else text
