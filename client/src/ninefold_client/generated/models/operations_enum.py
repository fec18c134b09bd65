from typing import Literal

OperationsEnum = Literal[
    "chat",
    "completions",
    "count_tokens",
    "embeddings",
    "images",
    "messages",
    "rerank",
    "responses",
    "speech",
    "transcriptions",
    "translations",
    "videos",
]

OPERATIONS_ENUM_VALUES: set[OperationsEnum] = {
    "chat",
    "completions",
    "count_tokens",
    "embeddings",
    "images",
    "messages",
    "rerank",
    "responses",
    "speech",
    "transcriptions",
    "translations",
    "videos",
}


def check_operations_enum(value: str) -> OperationsEnum:
    if value in OPERATIONS_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {OPERATIONS_ENUM_VALUES!r}")
