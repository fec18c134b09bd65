from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.exporter_metric_source import ExporterMetricSource
from ...models.patched_metric_source_change_request import (
    PatchedMetricSourceChangeRequest,
)
from ...models.prometheus_metric_source import PrometheusMetricSource
from ...models.push_metric_source import PushMetricSource
from ...types import UNSET, Unset


def telemetry_sources_partial_update(
    uid: str,
    *,
    client: AuthenticatedClient,
    body: PatchedMetricSourceChangeRequest | Unset = UNSET,
    dry_run: bool | Unset = False,
) -> ExporterMetricSource | PrometheusMetricSource | PushMetricSource:
    """Change, pause or resume a metric source.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "patch",
        "url": "/api/v1/telemetry-sources/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
        "params": params,
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)

    def _parse_response_200(
        data: object,
    ) -> ExporterMetricSource | PrometheusMetricSource | PushMetricSource:
        try:
            if not isinstance(data, dict):
                raise TypeError()
            componentsschemas_metric_source_type_0 = ExporterMetricSource.from_dict(data)

            return componentsschemas_metric_source_type_0
        except (TypeError, ValueError, AttributeError, KeyError):
            pass
        try:
            if not isinstance(data, dict):
                raise TypeError()
            componentsschemas_metric_source_type_1 = PrometheusMetricSource.from_dict(data)

            return componentsschemas_metric_source_type_1
        except (TypeError, ValueError, AttributeError, KeyError):
            pass
        if not isinstance(data, dict):
            raise TypeError()
        componentsschemas_metric_source_type_2 = PushMetricSource.from_dict(data)

        return componentsschemas_metric_source_type_2

    response_200 = _parse_response_200(response.json())

    return response_200
