from typing import Any

from ...client import AuthenticatedClient
from ...models.exporter_metric_source import ExporterMetricSource
from ...models.exporter_metric_source_create_request import (
    ExporterMetricSourceCreateRequest,
)
from ...models.prometheus_metric_source import PrometheusMetricSource
from ...models.prometheus_metric_source_create_request import (
    PrometheusMetricSourceCreateRequest,
)
from ...models.push_metric_source import PushMetricSource
from ...models.push_metric_source_create_request import PushMetricSourceCreateRequest
from ...types import UNSET, Unset


def telemetry_sources_create(
    *,
    client: AuthenticatedClient,
    body: ExporterMetricSourceCreateRequest
    | PrometheusMetricSourceCreateRequest
    | PushMetricSourceCreateRequest,
    dry_run: bool | Unset = False,
    idempotency_key: str | Unset = UNSET,
) -> ExporterMetricSource | PrometheusMetricSource | PushMetricSource:
    """Create a metric source.

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
        "url": "/api/v1/telemetry-sources",
        "params": params,
    }

    if isinstance(body, ExporterMetricSourceCreateRequest):
        _kwargs["json"] = body.to_dict()
    elif isinstance(body, PrometheusMetricSourceCreateRequest):
        _kwargs["json"] = body.to_dict()
    else:
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)

    def _parse_response_201(
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

    response_201 = _parse_response_201(response.json())

    return response_201
