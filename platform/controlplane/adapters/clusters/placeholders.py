"""``{work}``, ``{inputs}``, ``{python}``, ``{port:NAME}``, ``{index}`` and ``{leader}`` in a Launch's texts.

No other brace is touched.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_PLACEHOLDER = re.compile(r"\{(work|inputs|python|index|leader|port:[a-z0-9-]{1,63})\}")


def fill(text: str, values: Mapping[str, str]) -> str:
    """The text with each known placeholder replaced; keys are ``work``, ``port:http`` and so on.

    One pass: what a value contains is never read as a placeholder again.
    """
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), text)
