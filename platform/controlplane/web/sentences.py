"""What services, rules and adapters say, in the reader's language.

Reasons are written once, in English, and kept with the row that they explain; who will read them is not
known then. A page recognises the sentence again by its words and fills the figures and names into the
translation. What nobody translated, such as the words of an engine's own error, stays as it was said.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import polib
from django.conf import settings
from django.utils.translation import get_language, to_locale

DOMAIN = "sentences"
_FILLED = re.compile(r"\{(\d+)\}")
#: A sentence may quote one that quotes another.
_DEEPEST = 3


@dataclass(frozen=True, slots=True)
class _Sentence:
    pattern: re.Pattern[str]
    translation: str

    def render(self, text: str, *, catalogue: Catalogue, depth: int) -> str | None:
        found = self.pattern.fullmatch(text)
        if found is None:
            return None
        values = {
            number: catalogue.quoted(found.group(f"v{number}"), depth=depth + 1)
            for number in (name[1:] for name in found.groupdict())
        }
        return _FILLED.sub(lambda place: values[place.group(1)], self.translation)


class Catalogue:
    """The sentences of one language."""

    def __init__(self, entries: dict[str, str]) -> None:
        self._fixed = {said: told for said, told in entries.items() if not _FILLED.search(said)}
        filled = [said for said in entries if said not in self._fixed]
        # The sentence with the most words of its own is the one that was meant.
        filled.sort(key=lambda said: -len(_FILLED.sub("", said)))
        self._filled = [_Sentence(_pattern(said), entries[said]) for said in filled]

    def render(self, text: str, *, depth: int = 0) -> str:
        """The translation; the text itself where there is none."""
        if (fixed := self._fixed.get(text)) is not None:
            return fixed
        for sentence in self._filled:
            told = sentence.render(text, catalogue=self, depth=depth)
            if told is not None:
                return told
        return text

    def quoted(self, text: str, *, depth: int) -> str:
        """What was filled in: a sentence in its turn, or a name or figure, which stays."""
        return self.render(text, depth=depth) if " " in text and depth < _DEEPEST else text


def _pattern(said: str) -> re.Pattern[str]:
    parts = _FILLED.split(said)
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
    """Where the sentences of a language are, if it has any."""
    return Path(settings.LOCALE_PATHS[0], locale, "LC_MESSAGES", f"{DOMAIN}.po")


@cache
def _catalogue(locale: str) -> Catalogue | None:
    path = path_of(locale)
    if not path.is_file():
        return None
    entries = polib.pofile(str(path))
    return Catalogue({entry.msgid: entry.msgstr for entry in entries.translated_entries()})


@lru_cache(maxsize=4096)
def _render(locale: str, text: str) -> str:
    catalogue = _catalogue(locale)
    return text if catalogue is None else catalogue.render(text)


def said(text: str) -> str:
    """The sentence in the language of the current reader."""
    return _render(to_locale(get_language() or "en"), text) if text else text
