from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.exporter_metric_source import ExporterMetricSource
from ...models.prometheus_metric_source import PrometheusMetricSource
from ...models.push_metric_source import PushMetricSource


def telemetry_sources_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> ExporterMetricSource | PrometheusMetricSource | PushMetricSource:
    """Get a metric source.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/telemetry-sources/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

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
