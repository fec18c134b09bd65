"""Every page of the product: one list for screenshots, accessibility, keyboard and budget.

Arguments name things of the sample company (``tests/e2e/demo/company.py``). An address that is no page has
its reason in ``NO_PAGES``. A test holds both to the project's addresses, so that none can be forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """An address to look at."""

    #: Of a file: unique.
    title: str
    #: As in ``urlpatterns``.
    url_name: str
    #: ``{…}`` stands for names of the sample company.
    path: str
    #: Whether charts are on it; the budget counts what they bring apart.
    charts: bool = False
    #: Log-in and the like: for somebody who is not logged in.
    stranger: bool = False
    #: For staff only.
    staff: bool = False
    #: A CSS selector to wait for, beside the page itself.
    wait_for: str = ""

    @property
    def viewer(self) -> str:
        """Who looks at it: ``stranger``, ``staff`` or ``person``."""
        return "stranger" if self.stranger else "staff" if self.staff else "person"

    def address(self, names: Mapping[str, str]) -> str:
        """:raises KeyError: if the sample company has nothing of that name."""
        path = self.path
        while "{" in path:
            before, _, rest = path.partition("{")
            name, _, after = rest.partition("}")
            path = f"{before}{names[name]}{after}"
        return path


def _page(url_name: str, path: str, title: str = "", **options: bool | str) -> Page:
    return Page(url_name=url_name, path=path, title=title or url_name, **options)  # type: ignore[arg-type]


PAGES: tuple[Page, ...] = (
    _page("login", "/login", stranger=True),
    _page("home", "/"),
    _page("models", "/models"),
    _page("model", "/models/{model.line}"),
    _page("model", "/models/{model.line}?tab=compare", "model-compare"),
    _page("model", "/models/{model.line}?tab=lineage", "model-lineage"),
    _page("model-version", "/models/versions/{model.tuned}"),
    _page("model-version", "/models/versions/{model.tuned}?tab=files", "model-version-files"),
    _page("model-version", "/models/versions/{model.base}?tab=lineage", "model-version-lineage"),
    _page("model-version", "/models/versions/{model.base}", "model-version-base"),
    _page("model-version-quantization", "/models/versions/{model.quantized}/quantization"),
    _page(
        "model-version-quantization",
        "/models/versions/{model.unfit}/quantization",
        "model-version-unfit",
    ),
    _page("model-version", "/models/versions/{model.importing}", "model-version-importing"),
    _page("model-version", "/models/versions/{model.refused}", "model-version-refused"),
    _page("model-import", "/models/import"),
    _page("model-fetch", "/models/fetch"),
    _page("model-version", "/models/versions/{model.arriving}", "model-version-arriving"),
    _page("sizing", "/models/sizing"),
    _page(
        "sizing",
        "/models/sizing?task=serve&model=catalog:qwen2.5-72b-instruct&chip=nvidia-h800&context=8192&concurrency=32",
        "sizing-serve",
        charts=True,
    ),
    _page(
        "sizing",
        "/models/sizing?task=train&model=catalog:qwen2.5-7b-instruct&chip=ascend-910b3&context=4096&tensor=3&cards=8",
        "sizing-illegal",
    ),
    _page("model-version", "/models/versions/{model.catalogued}", "model-version-catalogued"),
    _page("catalog", "/models/catalog"),
    _page(
        "catalog",
        "/models/catalog?modality=llm&train=nvidia&train=ascend&sort=-parameters"
        "&ids=qwen2.5-7b-instruct&ids=qwen3-8b",
        "catalog-chosen",
    ),
    _page("catalog", "/models/catalog?q=nothing-like-this", "catalog-none"),
    _page("catalog-entry", "/models/catalog/qwen2.5-7b-instruct", charts=True),
    _page("catalog-entry", "/models/catalog/deepseek-v3", "catalog-entry-large", charts=True),
    _page("catalog-entry", "/models/catalog/wide-deep", "catalog-entry-unknown"),
    _page(
        "catalog-compare",
        "/models/catalog/compare?ids=qwen2-7b-instruct,qwen3-8b,deepseek-v3,wan2.1-t2v-14b",
    ),
    _page("catalog-compare", "/models/catalog/compare", "catalog-compare-none"),
    _page("engines", "/engines"),
    _page("engine", "/engines/vllm_ascend"),
    _page("engine", "/engines/transformers", "engine-transformers"),
    _page("datasets", "/datasets"),
    _page("dataset-new", "/datasets/new"),
    _page("dataset", "/datasets/{dataset}"),
    _page("dataset-version", "/datasets/versions/{dataset.version}", charts=True),
    _page(
        "dataset-version",
        "/datasets/versions/{dataset.chats}",
        "dataset-version-chats",
        charts=True,
    ),
    _page("dataset-rows", "/datasets/versions/{dataset.version}/rows"),
    _page("dataset-rows", "/datasets/versions/{dataset.chats}/rows?q=订单", "dataset-rows-chats"),
    _page("dataset-lineage", "/datasets/versions/{dataset.version}/lineage"),
    _page("storage", "/storage"),
    _page("storage", "/storage?tab=biggest", "storage-biggest"),
    _page("storage", "/storage?tab=deleted", "storage-deleted"),
    _page("storage", "/storage?tab=retention", "storage-retention"),
    _page("storage", "/storage?tab=runs", "storage-runs", staff=True),
    _page("storage-quota", "/storage/quotas/{team}", staff=True),
    _page("storage-rules", "/storage/rules/others", staff=True),
    _page("jobs", "/jobs"),
    _page("job-new", "/jobs/new"),
    _page("job-new-finetune", "/jobs/new/finetune"),
    _page("job-new-quantize", "/jobs/new/quantize"),
    _page("job-new-evaluate", "/jobs/new/evaluate"),
    _page("job-new-script", "/jobs/new/script"),
    _page("job", "/jobs/{job.running}", "job-running", charts=True),
    _page("job", "/jobs/{job.waiting}", "job-waiting"),
    _page("job", "/jobs/{job.preparing}", "job-preparing"),
    _page("job", "/jobs/{job.stopping}", "job-stopping", charts=True),
    _page("job", "/jobs/{job.failed}", "job-failed", charts=True),
    _page("job", "/jobs/{job.cancelled}", "job-cancelled"),
    _page("job", "/jobs/{job.succeeded}", "job-succeeded", charts=True),
    _page("job", "/jobs/{job.evaluation}", "job-evaluation"),
    _page("job", "/jobs/{job.script}", "job-script"),
    _page("job", "/jobs/{job.failed}?tab=log", "job-log"),
    _page("job", "/jobs/{job.failed}?tab=log&q=loss", "job-log-search"),
    _page("job", "/jobs/{job.failed}?tab=events", "job-events"),
    _page("job", "/jobs/{job.running}?tab=spec", "job-spec"),
    _page("job", "/jobs/{job.succeeded}?tab=rendered", "job-rendered"),
    _page("job", "/jobs/{job.failed}?tab=rendered", "job-rendered-for-two"),
    _page("job", "/jobs/{job.script}?tab=cluster", "job-cluster", wait_for="#objects"),
    _page("job-new-finetune", "/jobs/new/finetune?clone={job.succeeded}", "job-clone"),
    _page(
        "job-compare",
        "/jobs/compare?job={job.sibling.1}&job={job.sibling.2}&job={job.sibling.3}",
        charts=True,
    ),
    _page("job-compare", "/jobs/compare", "job-compare-empty"),
    _page("job-files", "/jobs/{job.script}/files"),
    _page("pipelines", "/pipelines"),
    _page("pipeline-new", "/pipelines/new"),
    _page("pipeline", "/pipelines/{pipeline.running}", "pipeline-running"),
    _page("pipeline", "/pipelines/{pipeline.held}", "pipeline-held"),
    _page("pipeline", "/pipelines/{pipeline.succeeded}", "pipeline-succeeded"),
    _page("pipeline", "/pipelines/{pipeline.failed}", "pipeline-failed"),
    _page("pipeline", "/pipelines/{pipeline.held}?tab=events", "pipeline-events"),
    _page("deployments", "/deployments"),
    _page("deployment-new", "/deployments/new"),
    _page("deployment", "/deployments/{deployment.ready}", "deployment-ready"),
    _page("deployment", "/deployments/{deployment.degraded}", "deployment-degraded"),
    _page("deployment", "/deployments/{deployment.starting}", "deployment-starting"),
    _page("deployment", "/deployments/{deployment.stopped}", "deployment-stopped"),
    _page(
        "deployment",
        "/deployments/{deployment.ready}?tab=calls",
        "deployment-calls",
        charts=True,
    ),
    _page("deployment", "/deployments/{deployment.starting}?tab=calls", "deployment-no-calls"),
    _page("deployment", "/deployments/{deployment.ready}?tab=revisions", "deployment-revisions"),
    _page("deployment", "/deployments/{deployment.degraded}?tab=events", "deployment-events"),
    _page("deployment", "/deployments/{deployment.degraded}?tab=log", "deployment-logs"),
    _page("deployment-revise", "/deployments/{deployment.ready}/revise"),
    _page("playground", "/playground"),
    _page("keys", "/keys"),
    _page("keys", "/keys?state=all", "keys-all"),
    _page("key", "/keys/{key}"),
    _page("key-new", "/keys/new"),
    _page("fleet", "/fleet"),
    _page("fleet-map", "/fleet/map", wait_for="canvas:not([hidden])"),
    _page(
        "fleet-map",
        "/fleet/map?at=cluster:sample-gpus&by=state",
        "fleet-map-part",
        wait_for="canvas:not([hidden])",
    ),
    _page("card", "/fleet/cards/{card}", charts=True),
    _page("card", "/fleet/cards/{card.broken}", "card-broken", charts=True, staff=True),
    _page("card", "/fleet/cards/{card.broken}?tab=history", "card-history"),
    _page("card", "/fleet/cards/{card}?tab=faults", "card-faults"),
    _page("card", "/fleet/cards/{card}?tab=work", "card-work"),
    _page("faults", "/fleet/faults", staff=True),
    _page("faults", "/fleet/faults?text=zzz", "faults-none"),
    _page("held-back", "/fleet/held-back", staff=True),
    _page("sources", "/fleet/sources", staff=True),
    _page("source-new", "/fleet/sources/new", staff=True),
    _page("source-new", "/fleet/sources/new?kind=prometheus", "source-new-prometheus", staff=True),
    _page("source", "/fleet/sources/{source}", staff=True),
    _page("source", "/fleet/sources/{source.degraded}", "source-degraded", staff=True),
    _page("source", "/fleet/sources/{source.agents}", "source-agents", staff=True),
    _page("source-change", "/fleet/sources/{source}/change", staff=True),
    _page("agents", "/fleet/sources/agents", staff=True),
    _page("agents", "/fleet/sources/agents?text=zzz", "agents-none", staff=True),
    _page("node-token-new", "/fleet/sources/tokens/new", staff=True),
    _page("waste", "/fleet/waste"),
    _page("exposure", "/fleet/exposure"),
    _page("alerts", "/fleet/alerts", staff=True),
    _page("alerts", "/fleet/alerts?rule=zzz", "alerts-none", staff=True),
    _page("alerts-past", "/fleet/alerts/past", staff=True),
    _page("alert", "/fleet/alerts/{alert}", staff=True),
    _page("alert-silences", "/fleet/alerts/silences", staff=True),
    _page("alert-silence-new", "/fleet/alerts/silences/new", staff=True),
    _page("alert-rules", "/fleet/alerts/rules", staff=True),
    _page("alert-rule-new", "/fleet/alerts/rules/new", staff=True),
    _page("alert-rule", "/fleet/alerts/rules/{alert.rule}", staff=True),
    _page("alert-routes", "/fleet/alerts/routes", staff=True),
    _page("alert-route-new", "/fleet/alerts/routes/new", staff=True),
    _page("alert-route", "/fleet/alerts/routes/{alert.route}", staff=True),
    _page("alert-receiver-new", "/fleet/alerts/receivers/new", staff=True),
    _page("rollouts", "/fleet/rollouts", staff=True),
    _page("rollout-new", "/fleet/rollouts/new", staff=True),
    _page("rollout", "/fleet/rollouts/{rollout}", staff=True),
    _page("topology", "/topology"),
    _page("topology", "/topology?at=cluster:sample-gpus&by=team", "topology-part"),
    _page("topology", "/topology?at=node:sample-gpus/sample-gpus-1", "topology-node"),
    _page("defragmentation-plans", "/defragmentation-plans"),
    _page("defragmentation-plan", "/defragmentation-plans/{defragmentation_plan}"),
    _page("defragmentation-plan-new", "/defragmentation-plans/new", staff=True),
    _page(
        "defragmentation-plan-new",
        "/defragmentation-plans/new?purpose=fewer_fragments",
        "defragmentation-plan-new-nothing",
        staff=True,
    ),
    _page("clusters", "/fleet/clusters"),
    _page("clusters", "/fleet/clusters?text=zzz", "clusters-none"),
    _page("cluster-new", "/fleet/clusters/new", staff=True),
    _page("cluster", "/fleet/clusters/{cluster}", staff=True),
    _page("cluster", "/fleet/clusters/{cluster.lost}", "cluster-lost"),
    _page("cluster-change", "/fleet/clusters/{cluster}/change", staff=True),
    _page(
        "node",
        "/fleet/clusters/{cluster}/nodes/sample-gpus-3",
        staff=True,
        wait_for="#conditions",
    ),
    _page("chips", "/fleet/chips"),
    _page("chips", "/fleet/chips?text=zzz", "chips-none"),
    _page("chip", "/fleet/chips/ascend-910a"),
    _page("chip", "/fleet/chips/nvidia-h800?code=79", "chip-fault"),
    _page("chip", "/fleet/chips/biren-br106", "chip-unknown"),
    _page("queues", "/queues"),
    _page("queues", "/queues?chip=nvidia-h800", "queues-chip"),
    _page("queue", "/queues/{queue}", "queue-waiting"),
    _page("queue", "/queues/{queue.default}?tab=running", "queue-running"),
    _page("queue", "/queues/{queue}?tab=usage&chip=nvidia-h800", "queue-usage-tab", charts=True),
    _page("queue", "/queues/{queue}?tab=changes", "queue-changes"),
    _page("queue", "/queues/{queue.above}?tab=below", "queue-below"),
    _page("queue-reclaim", "/queues/{queue}/reclaim?chip=cpu&cards=4&together=4"),
    _page("claim", "/claims/{claim.waiting}", "claim-waiting"),
    _page("claim", "/claims/{claim.running}", "claim-running"),
    _page("claim-what-if", "/claims/{claim.waiting}/what-if"),
    _page("what-if", "/what-ifs/{what_if}"),
    _page("forecast", "/forecast", staff=True),
    _page("usage-report", "/reports/usage?range=last", charts=True),
    _page("usage-report", "/reports/usage?by=chip&per=day", "usage-report-days", charts=True),
    _page(
        "usage-report", "/reports/usage?range=days&first=2020-01-01&last=2020-01-02", "usage-none"
    ),
    _page("status", "/status", staff=True),
    _page("notifications", "/notifications"),
    _page("notification-settings", "/notifications/settings"),
    _page("webhooks", "/teams/{team.slug}/webhooks", staff=True),
    _page("webhook-new", "/teams/{team.slug}/webhooks/new", staff=True),
    _page("webhook", "/webhooks/{webhook.working}", staff=True),
    _page("webhook", "/webhooks/{webhook.failing}", "webhook-failing", staff=True),
    _page("webhook-change", "/webhooks/{webhook.working}/change", staff=True),
    _page("teams", "/teams"),
    _page("team", "/teams/{team.slug}"),
    _page("team-new", "/teams/new", staff=True),
    _page("team-member", "/teams/{team.slug}/members/{person}", staff=True),
    _page("people", "/people", staff=True),
    _page("person-new", "/people/new", staff=True),
    _page("person", "/people/{person}", staff=True),
    _page("audit", "/audit", staff=True),
    _page("profile", "/profile"),
    _page("password", "/profile/password"),
    _page("email-change", "/profile/email"),
    _page("email-change-sent", "/profile/email/sent"),
    _page("search", "/search?q=a"),
    _page("problem-types", "/docs/problems"),
    _page("design", "/design", staff=True, charts=True),
)

#: The console of queues: pages of the admin, in the admin's frame.
CONSOLE: tuple[Page, ...] = (
    _page("quotas_queue_changelist", "/admin/quotas/queue/", "console", staff=True),
    _page("quotas_queue_add", "/admin/quotas/queue/add/?below={queue}", "console-new", staff=True),
    _page(
        "quotas_queue_change",
        "/admin/quotas/queue/{queue.key}/change/",
        "console-edit",
        staff=True,
    ),
    _page("quotas_queue_move", "/admin/quotas/queue/{queue.key}/move/", "console-move", staff=True),
    _page(
        "quotas_queue_state",
        "/admin/quotas/queue/{queue.key}/state/?to=draining",
        "console-state",
        staff=True,
    ),
    _page(
        "quotas_queue_retire",
        "/admin/quotas/queue/{queue.key}/retire/",
        "console-retire",
        staff=True,
    ),
    _page("quotas_queue_bulk", "/admin/quotas/queue/bulk/", "console-bulk", staff=True),
    _page(
        "quotas_queue_bulk",
        "/admin/quotas/queue/bulk/?of=chip:nvidia-h800&uid={queue}",
        "console-bulk-chosen",
        staff=True,
    ),
    _page("quotas_queue_import", "/admin/quotas/queue/import/", "console-import", staff=True),
    _page("quotas_queue_changes", "/admin/quotas/queue/changes/", "console-history", staff=True),
    _page(
        "quotas_queue_change_detail",
        "/admin/quotas/queue/changes/{queue.change}/",
        "console-past",
        staff=True,
    ),
)

#: Titles of the pages that contact sheets show.
MAIN = (
    "home",
    "catalog-chosen",
    "catalog-entry",
    "sizing-serve",
    "models",
    "model-version",
    "model-version-quantization",
    "dataset-version",
    "jobs",
    "job-new-finetune",
    "job-running",
    "job-failed",
    "job-rendered-for-two",
    "pipeline-held",
    "deployments",
    "deployment-ready",
    "playground",
    "fleet",
    "chips",
    "storage",
    "team",
    "design",
    "login",
)

#: Why an address below ``config.urls.PAGES`` is no page to look at.
NO_PAGES: Mapping[str, str] = {
    "healthz": "for machines",
    "readyz": "for machines",
    "metrics": "for machines",
    "set_language": "an act",
    "logout": "an act",
    "sign-on": "leads to the provider",
    "sign-on-callback": "where the provider leads back to",
    "sign-on-link": "leads to the provider",
    "sign-on-unlink": "an act",
    "password-reset": "only where e-mail is configured",
    "password-reset-sent": "only where e-mail is configured",
    "password-set": "by a link that works once",
    "email-change-confirm": "by a link that works once",
    "profile-change": "an act",
    "sessions-end": "an act",
    "team-rename": "an act",
    "team-member-remove": "an act",
    "person-invite": "an act",
    "person-activate": "an act",
    "person-deactivate": "an act",
    "person-unlock": "an act",
    "person-company-roles": "an act",
    "person-promote": "an act",
    "token-revoke": "an act",
    "storage-act": "an act",
    "storage-left": "an act",
    "storage-rules-forget": "an act",
    "cluster-check": "an act",
    "cluster-remove": "an act",
    "node-cordon": "an act",
    "node-uncordon": "an act",
    "topology-cards": "figures of the picture",
    "fleet-map-cards": "figures of the picture",
    "fleet-map-card": "leads to the card",
    "card-chart": "figures of a chart",
    "card-isolate": "an act",
    "card-release": "an act",
    "card-test": "an act",
    "node-isolate": "an act",
    "node-release": "an act",
    "faults-acknowledge": "an act",
    "faults-isolate": "an act",
    "faults-release": "an act",
    "held-back-isolate": "an act",
    "held-back-leave": "an act",
    "source-try": "an act",
    "source-pause": "an act",
    "source-resume": "an act",
    "source-delete": "an act",
    "node-token-revoke": "an act",
    "rollout-pause": "an act",
    "rollout-resume": "an act",
    "rollout-cancel": "an act",
    "alert-silence-end": "an act",
    "alert-rule-delete": "an act",
    "alert-route-delete": "an act",
    "alert-receiver-test": "an act",
    "alert-receiver-pause": "an act",
    "alert-receiver-resume": "an act",
    "alert-receiver-delete": "an act",
    "defragmentation-plan-approve": "an act",
    "defragmentation-plan-dismiss": "an act",
    "design-chart": "figures of a chart",
    "usage-chart": "figures of a chart",
    "queue-usage": "figures of a chart",
    "model-version-retry": "an act",
    "model-fetch-cancel": "an act",
    "version-accept": "an act",
    "version-reject": "an act",
    "dataset-check": "a fragment of the form",
    "dataset-lengths": "figures of a chart",
    "dataset-file": "a download",
    "model-file": "a download",
    "job-check": "a fragment of the form",
    "notification": "leads to what it tells of",
    "notification-bell": "a fragment of every page",
    "notifications-read": "an act",
    "notifications-undo": "an act",
    "notification-test": "an act",
    "webhook-test": "an act",
    "webhook-pause": "an act",
    "webhook-resume": "an act",
    "webhook-rotate": "an act",
    "webhook-delete": "an act",
    "delivery-again": "an act",
    "pipeline-check": "a fragment of the form",
    "pipeline-cancel": "an act",
    "pipeline-retry": "an act",
    "pipeline-approve-anyway": "an act",
    "job-cancel": "an act",
    "jobs-cancel": "an act",
    "job-filter-save": "an act",
    "job-filter-change": "an act",
    "job-compare-curve": "figures of a chart",
    "job-retry": "an act",
    "job-curve": "figures of a chart",
    "sizing-curve": "figures of a chart",
    "job-log": "text",
    "job-render": "an answer to a form: job-rendered shows the same part",
    "job-file": "a download",
    "deployment-quick": "an act",
    "deployment-check": "a fragment of the form",
    "deployment-fields": "a fragment of the form",
    "revision-check": "a fragment of the form",
    "deployment-chart": "figures of a chart",
    "deployment-log": "a fragment of the log",
    "deployment-roll-back": "an act",
    "deployment-scale": "an act",
    "deployment-stop": "an act",
    "deployment-start": "an act",
    "deployment-delete": "an act",
    "playground-chat": "a stream",
    "key-propagation": "a fragment of the page of a new key",
    "key-rotate": "an act",
    "key-revoke": "an act",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Some of the pages."""

    prefixes: tuple[str, ...] = field(default=())

    def pages(self) -> tuple[Page, ...]:
        """Those whose path or title begins with one of the prefixes; without any, all but the admin's."""
        if not self.prefixes:
            return PAGES
        return tuple(
            page
            for page in (*PAGES, *CONSOLE)
            if any(page.path.startswith(one) or page.title.startswith(one) for one in self.prefixes)
        )
