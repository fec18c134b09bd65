from typing import Literal

LanguageEnum = Literal["en", "zh-hans"]

LANGUAGE_ENUM_VALUES: set[LanguageEnum] = {
    "en",
    "zh-hans",
}


def check_language_enum(value: str) -> LanguageEnum:
    if value in LANGUAGE_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {LANGUAGE_ENUM_VALUES!r}")
