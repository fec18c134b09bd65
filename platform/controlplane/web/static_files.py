"""Storage of static files: compressed, and named by content hash."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # The base of whitenoise's storage, which has no types.
    from django.contrib.staticfiles.storage import ManifestStaticFilesStorage as BaseStorage
else:
    from whitenoise.storage import CompressedManifestStaticFilesStorage as BaseStorage

#: ``import {…} from "./other.js";``, in our own modules only: elsewhere it may stand in a comment.
_IMPORTS = (
    "js/*.js",
    (
        (
            r"""(?P<matched>import(?P<names>\s*\{[^}]*\}|\s*\*\s*as\s*\w+)\s*from\s*"(?P<url>\./[^"]+)";)""",
            """import%(names)s from "%(url)s";""",
        ),
    ),
)


class HashedJavaScriptModuleStorage(BaseStorage):
    """Rewrites imports between JavaScript modules to hashed names.

    Otherwise a module would be loaded a second time under its plain name, with state of its own, and a browser
    could use an old one after an upgrade.
    """

    patterns = (*BaseStorage.patterns, _IMPORTS)
