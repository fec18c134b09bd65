"""What the generated functions need of a client."""

from typing import Protocol

import httpx


class Client(Protocol):
    """Sends requests with the address, the token and the error handling of one server."""

    def get_httpx_client(self) -> httpx.Client:
        """Return the HTTP client, which raises ``ApiError`` for every error response."""
        ...


AuthenticatedClient = Client
