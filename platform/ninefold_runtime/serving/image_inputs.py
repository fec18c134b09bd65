"""Images of chat messages: data URLs of bounded size. Nothing is downloaded.

A server that fetched the URLs of its clients would reach what they cannot: metadata services, other pods. So a
remote URL is refused, as is everything that is not one of three formats of pixels.
"""

from __future__ import annotations

import base64
import binascii
import io
import re
from dataclasses import dataclass
from typing import Any

from ninefold_runtime.serving.request_fields import RequestRejected

#: Of one conversation.
MOST_IMAGES = 16
LARGEST_IMAGE = 5 * 1024 * 1024
#: An image of few bytes may have gigabytes of pixels.
MOST_PIXELS = 4096 * 4096
_DATA_URL = re.compile(r"data:image/(png|jpeg|webp);base64,", re.IGNORECASE)
_DETAILS = (None, "auto", "low", "high")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageInput:
    """An image as a client sent it."""

    #: ``png``, ``jpeg`` or ``webp``.
    format: str
    content: bytes
    #: Where in the request it is.
    at: str


def parse_image_part(part: dict[str, Any], *, at: str) -> ImageInput:
    """The image of a content part of the type ``image_url``, or ``input_image`` of responses.

    :raises RequestRejected: if it is not a data URL of an image, or too large.
    """
    given, name = part.get("image_url"), "url"
    if part.get("type") == "input_image":
        given, name = part, "image_url"
    else:
        at = f"{at}.image_url"
    url = given.get(name) if isinstance(given, dict) else None
    if not isinstance(given, dict) or not isinstance(url, str):
        raise RequestRejected(f"{at} must be an object with {name}", param=at)
    if given.get("detail") not in _DETAILS:
        raise RequestRejected(
            f"{at}.detail must be auto, low or high, not {given['detail']!r}", param=f"{at}.detail"
        )
    at = f"{at}.{name}"
    matched = _DATA_URL.match(url)
    if matched is None:
        raise RequestRejected(
            f"{at} must be a data URL such as data:image/png;base64,… with a PNG, JPEG or WebP; "
            "this server downloads nothing",
            param=at,
        )
    # Checked before anything is decoded: base64 writes 3 bytes as 4 characters.
    if (len(url) - matched.end()) * 3 // 4 > LARGEST_IMAGE + 2:
        raise RequestRejected(
            f"{at} has more than {LARGEST_IMAGE // 1024**2} MiB", param=at, status=413
        )
    try:
        content = base64.b64decode(url[matched.end() :], validate=True)
    except (binascii.Error, ValueError) as error:
        raise RequestRejected(f"{at} is not valid base64", param=at) from error
    return ImageInput(format=matched[1].lower(), content=content, at=at)


def decode_image(image: ImageInput) -> Any:
    """The pixels as an image of Pillow in RGB.

    :raises RequestRejected: if they cannot be read, or are too many.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        # Only the format that the client names: other decoders of Pillow are not reached.
        with Image.open(io.BytesIO(image.content), formats=[image.format]) as opened:
            width, height = opened.size
            if width * height > MOST_PIXELS:
                raise RequestRejected(
                    f"{image.at} has {width} × {height} pixels; at most {MOST_PIXELS:,} are read",
                    param=image.at,
                )
            return opened.convert("RGB")
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        raise RequestRejected(
            f"{image.at} cannot be read as {image.format}", param=image.at
        ) from error
