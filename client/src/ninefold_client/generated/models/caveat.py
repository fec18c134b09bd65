from typing import Literal

Caveat = Literal["architecture", "back_end", "generic", "hearsay", "loaded", "news", "untried"]

CAVEAT_VALUES: set[Caveat] = {
    "architecture",
    "back_end",
    "generic",
    "hearsay",
    "loaded",
    "news",
    "untried",
}


def check_caveat(value: str) -> Caveat:
    if value in CAVEAT_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {CAVEAT_VALUES!r}")
