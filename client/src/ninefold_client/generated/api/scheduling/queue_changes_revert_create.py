from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.queue_change_revert_request import QueueChangeRevertRequest
from ...models.queue_tree_preview import QueueTreePreview
from ...models.queue_tree_saved import QueueTreeSaved
from ...types import UNSET, Unset


def queue_changes_revert_create(
    uid: str,
    *,
    client: AuthenticatedClient,
    body: QueueChangeRevertRequest | Unset = UNSET,
    dry_run: bool | Unset = False,
    idempotency_key: str | Unset = UNSET,
) -> QueueTreePreview | QueueTreeSaved:
    """Revert a change.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/queue-changes/{uid}/revert".format(
            uid=quote(str(uid), safe=""),
        ),
        "params": params,
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)

    def _parse_response_200(data: object) -> QueueTreePreview | QueueTreeSaved:
        try:
            if not isinstance(data, dict):
                raise TypeError()
            componentsschemas_saved_or_preview_type_0 = QueueTreeSaved.from_dict(data)

            return componentsschemas_saved_or_preview_type_0
        except (TypeError, ValueError, AttributeError, KeyError):
            pass
        if not isinstance(data, dict):
            raise TypeError()
        componentsschemas_saved_or_preview_type_1 = QueueTreePreview.from_dict(data)

        return componentsschemas_saved_or_preview_type_1

    response_200 = _parse_response_200(response.json())

    return response_200
