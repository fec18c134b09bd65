"""Which of the product's own variables an installer may see: how to install, no address and no key."""

from __future__ import annotations

import re
from collections.abc import Mapping

_PASSED_ON = re.compile(
    r"(PIP_.+|UV_.+|(https?|all|no)_proxy|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|XDG_CACHE_HOME"
    r"|HOME|PATH|LANG|TMPDIR|NINEFOLD_FIND_LINKS|NINEFOLD_LAUNCH)",
    re.IGNORECASE,
)


def installer_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Those variables that a supervisor is started with: it runs installers, and jobs never see them."""
    return {name: value for name, value in environment.items() if _PASSED_ON.fullmatch(name)}


def uv_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of ``uv``."""
    variables = installer_variables(environment)
    links = environment.get("NINEFOLD_FIND_LINKS") or environment.get("PIP_FIND_LINKS")
    # uv reads none of pip's variables: what was set for pip is meant for it too.
    for own, theirs in (
        ("UV_FIND_LINKS", links),
        ("UV_DEFAULT_INDEX", environment.get("PIP_INDEX_URL")),
        ("SSL_CERT_FILE", environment.get("PIP_CERT")),
    ):
        if theirs:
            variables.setdefault(own, theirs)
    return variables | {"UV_NO_PROGRESS": "1", "UV_PYTHON_DOWNLOADS": "never", "NO_COLOR": "1"}
