"""Where artifacts are stored."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from config.settings.access import read_bounded_integer
from config.settings.environment import env, require_one_of

_LONGEST_URL_HOURS = 168
#: Each pod gets a copy beside its other files, and a ConfigMap is limited.
_LARGEST_CA_FILE = 128 * 1024


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
        "ca_file": _require_certificates("NINEFOLD_S3_CA_FILE"),
        "encryption": "" if encryption == "bucket" else encryption,
        "kms_key_id": key,
        "url_hours": hours,
        "part_size": read_bounded_integer(
            "NINEFOLD_S3_PART_BYTES", default=32 * 1024 * 1024, least=5 * 1024 * 1024
        ),
    }


def _require_certificates(variable: str) -> str:
    """The absolute path of a PEM file with certificates; empty if the variable is.

    :raises ImproperlyConfigured: if the file cannot be read or used.
    """
    value: str = env.str(variable, default="")
    if not value:
        return ""
    path = Path(value).absolute()
    try:
        content = path.read_bytes()
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except ssl.SSLError as error:
        raise ImproperlyConfigured(
            f"{variable} is {value!r}, which has no valid PEM certificate: {error}"
        ) from error
    except OSError as error:
        raise ImproperlyConfigured(
            f"{variable} is {value!r}, which cannot be read: {error.strerror}"
        ) from error
    if b"-----BEGIN CERTIFICATE-----" not in content:
        raise ImproperlyConfigured(
            f"{variable} is {value!r}, which has no block BEGIN CERTIFICATE; it must be a PEM file"
        )
    if len(content) > _LARGEST_CA_FILE:
        raise ImproperlyConfigured(
            f"{variable} is {value!r}, which has {len(content)} bytes; it must have at most "
            f"{_LARGEST_CA_FILE}: keep only the authorities of the S3 service"
        )
    return str(path)
