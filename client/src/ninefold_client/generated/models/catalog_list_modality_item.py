from typing import Literal

CatalogListModalityItem = Literal[
    "asr", "embedding", "image-gen", "llm", "recommender", "rerank", "tts", "video", "vlm"
]

CATALOG_LIST_MODALITY_ITEM_VALUES: set[CatalogListModalityItem] = {
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


def check_catalog_list_modality_item(value: str) -> CatalogListModalityItem:
    if value in CATALOG_LIST_MODALITY_ITEM_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {CATALOG_LIST_MODALITY_ITEM_VALUES!r}"
    )
