"""Where artifacts are stored."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ImproperlyConfigured

from config.settings.access import read_bounded_integer
from config.settings.environment import env, require_one_of

_LONGEST_URL_HOURS = 168


def artifact_store_kind() -> str:
    """``filesystem`` or ``s3``."""
    return require_one_of("NINEFOLD_ARTIFACTS", ("filesystem", "s3"))


def s3_options(*, required: bool) -> dict[str, Any]:
    """Options of the S3 store; empty without a bucket. Credentials are not among them.

    :param required: whether artifacts are stored there.
    :raises ImproperlyConfigured: if a value cannot be used, or the bucket is required and missing.
    """
    bucket = env.str("NINEFOLD_S3_BUCKET", default="")
    if not bucket:
        if required:
            raise ImproperlyConfigured("NINEFOLD_ARTIFACTS is s3; set NINEFOLD_S3_BUCKET")
        return {}
    encryption = require_one_of("NINEFOLD_S3_ENCRYPTION", ("bucket", "AES256", "aws:kms"))
    key = env.str("NINEFOLD_S3_KMS_KEY_ID", default="")
    if key and encryption != "aws:kms":
        raise ImproperlyConfigured(
            f"NINEFOLD_S3_KMS_KEY_ID is set and NINEFOLD_S3_ENCRYPTION is {encryption!r}; it must be 'aws:kms'"
        )
    hours = read_bounded_integer("NINEFOLD_S3_URL_HOURS", default=24, least=1)
    if hours > _LONGEST_URL_HOURS:
        raise ImproperlyConfigured(
            f"NINEFOLD_S3_URL_HOURS is {hours}; it must be {_LONGEST_URL_HOURS} or less, the limit of S3"
        )
    return {
        "bucket": bucket,
        "prefix": env.str("NINEFOLD_S3_PREFIX", default="").strip("/"),
        "endpoint_url": env.str("NINEFOLD_S3_ENDPOINT_URL", default=""),
        "download_endpoint_url": env.str("NINEFOLD_S3_DOWNLOAD_ENDPOINT_URL", default=""),
        "region": env.str("NINEFOLD_S3_REGION", default=""),
        "path_style": env.bool("NINEFOLD_S3_PATH_STYLE", default=False),
        "encryption": "" if encryption == "bucket" else encryption,
        "kms_key_id": key,
        "url_hours": hours,
        "part_size": read_bounded_integer(
            "NINEFOLD_S3_PART_BYTES", default=32 * 1024 * 1024, least=5 * 1024 * 1024
        ),
    }
