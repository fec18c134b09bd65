from __future__ import annotations

from tests.integration.founding import committed_company, company, installation

__all__ = ["committed_company", "company", "installation"]
