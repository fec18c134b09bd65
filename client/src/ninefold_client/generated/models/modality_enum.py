from typing import Literal

ModalityEnum = Literal[
    "asr", "embedding", "image-gen", "llm", "recommender", "rerank", "tts", "video", "vlm"
]

MODALITY_ENUM_VALUES: set[ModalityEnum] = {
    "asr",
    "embedding",
    "image-gen",
    "llm",
    "recommender",
    "rerank",
    "tts",
    "video",
    "vlm",
}


def check_modality_enum(value: str) -> ModalityEnum:
    if value in MODALITY_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {MODALITY_ENUM_VALUES!r}")
