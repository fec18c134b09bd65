"""Settings of the product: safe defaults, overridden by the environment."""

from __future__ import annotations

from datetime import timedelta

from django.templatetags.static import static

from config.settings.access import (
    is_tls_terminated_by_proxy,
    oidc_provider,
    read_bounded_integer,
    read_networks,
)
from config.settings.artifacts import artifact_store_kind, s3_options
from config.settings.environment import (
    HOME,
    RESOURCES,
    allowed_hosts,
    database_settings,
    database_url,
    env,
    format_url_host,
    read_currency,
    read_secret,
    require_one_of,
)
from config.settings.outbound import (
    egress_policy,
    egress_proxy,
    hub_access,
    mail_server,
    public_url,
    telemetry_egress_policy,
)

BASE_DIR = RESOURCES
NINEFOLD_HOME = HOME
DEBUG = False
SECRET_KEY = read_secret("secret_key")
#: Not SECRET_KEY: it encrypts credentials at rest and can be rotated (first key encrypts, all decrypt).
NINEFOLD_ENCRYPTION_KEYS = [key for key in read_secret("encryption_key").split(",") if key]
NINEFOLD_GATEWAY_TOKEN = read_secret("gateway_token")

BIND = env.str("NINEFOLD_BIND", default="127.0.0.1")
WEB_PORT = env.int("NINEFOLD_WEB_PORT", default=8000)
GATEWAY_PORT = env.int("NINEFOLD_GATEWAY_PORT", default=8001)
#: How engine processes and gateways reach this web server.
NINEFOLD_CONTROL_URL = env.str("NINEFOLD_CONTROL_URL", default=f"http://127.0.0.1:{WEB_PORT}")
#: URL of the gateway for users and programs.
NINEFOLD_GATEWAY_URL = env.str(
    "NINEFOLD_GATEWAY_URL", default=f"http://{format_url_host(BIND)}:{GATEWAY_PORT}"
)
#: URL of the web for users; links in notifications begin with it.
NINEFOLD_PUBLIC_URL = public_url(NINEFOLD_CONTROL_URL)
#: Egress policy for user-supplied URLs, such as webhooks.
NINEFOLD_EGRESS = egress_policy()
NINEFOLD_EGRESS_PROXY = egress_proxy()
#: Egress policy for metric sources.
NINEFOLD_TELEMETRY = telemetry_egress_policy(NINEFOLD_EGRESS)
#: Retention in days of raw metric samples, and of hourly aggregates.
NINEFOLD_HISTORY_DAYS = read_bounded_integer("NINEFOLD_HISTORY_DAYS", default=7, least=1)
NINEFOLD_HOURS_DAYS = read_bounded_integer("NINEFOLD_HOURS_DAYS", default=90, least=1)
#: Where models are fetched from: mirrors and tokens, by hub.
NINEFOLD_HUBS = hub_access()

_mail = mail_server()
EMAIL_BACKEND = _mail.backend
EMAIL_HOST, EMAIL_PORT = _mail.host, _mail.port
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _mail.user, _mail.password
EMAIL_USE_TLS, EMAIL_USE_SSL = _mail.starttls, _mail.tls
#: A mail server that does not answer must not block the queue.
EMAIL_TIMEOUT = 10
#: The sender address; empty: no e-mail is sent.
NINEFOLD_EMAIL_FROM = DEFAULT_FROM_EMAIL = _mail.sender

#: Kind of the artifact store: ``filesystem`` or ``s3``.
NINEFOLD_ARTIFACTS = artifact_store_kind()
#: Options of the S3 store; empty if no bucket is configured.
NINEFOLD_S3 = s3_options(required=NINEFOLD_ARTIFACTS == "s3")
#: Bytes of the weight cache of the local cluster.
NINEFOLD_WEIGHT_CACHE_BYTES = read_bounded_integer(
    "NINEFOLD_WEIGHT_CACHE_BYTES", default=100 * 1024 * 1024 * 1024, least=1
)
#: Seconds from the start of one upload of a checkpoint to that of the next one.
NINEFOLD_CHECKPOINT_UPLOAD_SECONDS = read_bounded_integer(
    "NINEFOLD_CHECKPOINT_UPLOAD_SECONDS", default=600, least=0
)
NINEFOLD_MODEL_ROOTS = env.list("NINEFOLD_MODEL_ROOTS", default=[])
#: Whether this machine runs workloads; off where the product runs in containers.
NINEFOLD_LOCAL_CLUSTER = env.bool("NINEFOLD_LOCAL_CLUSTER", default=True)
#: Whether outbox messages are relayed on commit, not only by the beat.
NINEFOLD_WAKE_RELAY = True
#: Cards that this machine offers; 0 means one per processor core.
NINEFOLD_LOCAL_CARDS = env.int("NINEFOLD_LOCAL_CARDS", default=0)
#: Grace period in seconds for preempted workloads.
NINEFOLD_GRACE_SECONDS = read_bounded_integer("NINEFOLD_GRACE_SECONDS", default=120, least=0)
NINEFOLD_ROLLOUT_PROGRESS_DEADLINE_SECONDS = read_bounded_integer(
    "NINEFOLD_ROLLOUT_PROGRESS_DEADLINE_SECONDS", default=3600, least=60
)
#: Most pending claims of one user; 0 means no limit.
NINEFOLD_PENDING_PER_USER = read_bounded_integer("NINEFOLD_PENDING_PER_USER", default=1000, least=0)
#: Currency of usage costs.
NINEFOLD_CURRENCY = read_currency("NINEFOLD_CURRENCY")
NINEFOLD_UPLOAD_LIMIT = env.int("NINEFOLD_UPLOAD_LIMIT", default=256 * 1024 * 1024)

#: Whether the OpenAPI schema and its page are served to clients that are not signed in.
NINEFOLD_PUBLIC_SCHEMA = env.bool("NINEFOLD_PUBLIC_SCHEMA", default=False)
#: The bearer token for ``/metrics`` of the web and of gateways; empty: none is accepted.
NINEFOLD_METRICS_TOKEN = read_secret("metrics_token", required=False)
#: Long-polling endpoints, which are not logged as slow.
NINEFOLD_LONG_POLLS = frozenset({"/internal/gateway/snapshot"})

ALLOWED_HOSTS = allowed_hosts(
    named=env.list("NINEFOLD_ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]"]),
    inside=(f"http://{format_url_host(BIND)}", NINEFOLD_CONTROL_URL),
)
CSRF_TRUSTED_ORIGINS = env.list("NINEFOLD_TRUSTED_ORIGINS", default=[])

INSTALLED_APPS = [
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "csp",
    "django_htmx",
    "template_partials",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "axes",
    "controlplane.persistence",
    "controlplane.outbox",
    "controlplane.web",
    "apps.accounts",
    "apps.notifications",
    "apps.fleet",
    "apps.telemetry",
    "apps.models",
    "apps.quotas",
    "apps.jobs",
    "apps.serving",
    "apps.monitoring",
    "apps.workflows",
    "apps.console",
    "config",
]

#: What the apps above ``apps.models`` store, and which artifacts they require: for quotas, retention and garbage
#: collection. An app that refers to artifacts or blobs and is missing here loses their bytes.
NINEFOLD_STORAGE_CONSUMERS = (
    "apps.jobs.services.job_storage.JobStorage",
    "apps.serving.selectors.card_workloads.ServingStorageConsumer",
    "apps.workflows.selectors.WorkflowStorageConsumer",
)

MIDDLEWARE = [
    "controlplane.web.middleware.RequestLoggingMiddleware",
    "apps.accounts.web.middleware.TrustedProxyMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "apps.accounts.web.middleware.AuditContextMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "apps.accounts.web.middleware.SessionExpiredMiddleware",
    "apps.accounts.web.middleware.SessionAgeMiddleware",
    "apps.accounts.web.middleware.PreferencesMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "controlplane.web.middleware.AdminContentSecurityPolicyMiddleware",
    "controlplane.web.middleware.CrossOriginIsolationMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [RESOURCES / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "config.context_processors.page_template_context",
            ],
            "builtins": ["controlplane.web.templatetags.ninefold"],
        },
    },
]

DATABASES = {"default": database_settings(database_url())}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "accounts.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
#: Passwords hashed at a time by one process; 0 means half of the processors.
NINEFOLD_PASSWORD_HASHES = read_bounded_integer("NINEFOLD_PASSWORD_HASHES", default=0, least=0)
PASSWORD_HASHERS = ["controlplane.web.password_hashing.ConcurrencyLimitedPBKDF2PasswordHasher"]
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
LOGIN_URL = "/login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login"

#: Proxies whose X-Forwarded-For is trusted.
NINEFOLD_TRUSTED_PROXIES = read_networks("NINEFOLD_TRUSTED_PROXIES")
NINEFOLD_OIDC = oidc_provider()
#: The longest life of a personal token in days; 0 sets no limit.
NINEFOLD_TOKEN_MAX_DAYS = read_bounded_integer("NINEFOLD_TOKEN_MAX_DAYS", default=0, least=0)
#: Invalid tokens per client address and minute before throttling.
NINEFOLD_TOKEN_FAILURES = read_bounded_integer("NINEFOLD_TOKEN_FAILURES", default=30, least=1)

AXES_FAILURE_LIMIT = read_bounded_integer("NINEFOLD_LOGIN_FAILURES", default=5, least=1)
AXES_COOLOFF_TIME = timedelta(
    minutes=read_bounded_integer("NINEFOLD_LOGIN_COOL_OFF_MINUTES", default=15, least=1)
)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
#: Failed sign-ins from one address, for any user name, before it is locked out.
NINEFOLD_LOGIN_ADDRESS_FAILURES = read_bounded_integer(
    "NINEFOLD_LOGIN_ADDRESS_FAILURES", default=50, least=AXES_FAILURE_LIMIT
)
AXES_HANDLER = "apps.accounts.web.login_security.LoginLimitHandler"
AXES_CLIENT_IP_CALLABLE = "apps.accounts.web.login_security.client_address_for_lockout"
AXES_LOCKOUT_CALLABLE = "apps.accounts.web.login_security.lockout_response"
AXES_RESET_ON_SUCCESS = True
#: Attempts while locked out must not prolong it: the page shows when it ends.
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
#: The audit log records sign-ins.
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False

#: Maximum age of a session.
SESSION_COOKIE_AGE = 3600 * read_bounded_integer("NINEFOLD_SESSION_HOURS", default=168, least=1)
#: Maximum idle time of a session; polling by pages does not count as activity.
NINEFOLD_SESSION_IDLE = timedelta(
    hours=read_bounded_integer("NINEFOLD_SESSION_IDLE_HOURS", default=12, least=1)
)
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
#: Whether a proxy terminates TLS; off by default because the embedded product speaks plain HTTP on loopback.
NINEFOLD_HTTPS = is_tls_terminated_by_proxy(NINEFOLD_TRUSTED_PROXIES)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = NINEFOLD_HTTPS
#: ``apps.accounts.web.middleware.TrustedProxyMiddleware`` removes the header where no trusted proxy sent it.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if NINEFOLD_HTTPS else None
SECURE_SSL_REDIRECT = NINEFOLD_HTTPS
#: Probes, Prometheus, gateways, jobs and agents reach the web inside the cluster, by plain HTTP.
SECURE_REDIRECT_EXEMPT = [
    r"^(healthz|readyz|metrics)$",
    r"^internal/",
    r"^api/v1/attempts/",
    r"^api/v1/telemetry/push$",
]
SECURE_HSTS_SECONDS = (
    read_bounded_integer("NINEFOLD_HSTS_SECONDS", default=365 * 24 * 3600, least=0)
    if NINEFOLD_HTTPS
    else 0
)
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "connect-src": ["'self'"],
        "object-src": ["'none'"],
        "base-uri": ["'self'"],
        "frame-ancestors": ["'none'"],
        "form-action": ["'self'"],
    }
}

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [RESOURCES / "templates" / "locale"]
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True

STATIC_URL = "/static/"
STATIC_ROOT = HOME / "static"
STATICFILES_DIRS = [RESOURCES / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "controlplane.web.static_files.HashedJavaScriptModuleStorage"},
}
FILE_UPLOAD_TEMP_DIR = str(HOME / "tmp") if (HOME / "tmp").is_dir() else None
DATA_UPLOAD_MAX_MEMORY_SIZE = 8 * 1024 * 1024

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "apps.accounts.api.authentication.PersonalTokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": [
        "rest_framework.permissions.IsAuthenticated",
        "apps.accounts.api.authentication.TokenScopePermission",
    ],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "controlplane.web.rest.ViewSchema",
    "DEFAULT_PAGINATION_CLASS": "controlplane.web.pagination.KeysetPagination",
    "EXCEPTION_HANDLER": "controlplane.web.problem_details.exception_handler",
    "PAGE_SIZE": 50,
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}

SPECTACULAR_SETTINGS = {
    "TITLE": "Ninefold",
    "DESCRIPTION": "Jobs, models, datasets and deployments on a mixed fleet of GPUs and NPUs.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["controlplane.web.openapi.OpenApiSchemaPermission"],
    "SERVE_AUTHENTICATION": None,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "OAS_VERSION": "3.1.0",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "controlplane.web.spec_schemas.add_kind_schemas",
        "controlplane.web.watch.add_watches_to_openapi",
        "apps.monitoring.api.webhook_schemas.add_webhooks_to_openapi",
        "controlplane.web.openapi.add_problem_responses",
        "apps.accounts.api.openapi.add_token_scopes_to_openapi",
    ],
    "ENUM_NAME_OVERRIDES": {
        "JobKind": "apps.jobs.models.Job.KINDS",
        "JobState": "apps.jobs.models.Job.STATES",
        "AttemptState": "apps.jobs.models.Attempt.STATES",
        "ChipKind": "apps.models.api.catalog.CHIP_KINDS",
        "CatalogTask": "apps.models.models.CatalogCell.TASKS",
        "Support": "apps.models.models.CatalogCell.STATUSES",
        "Caveat": "apps.models.models.CatalogCell.CAVEATS",
        "ModelState": "apps.models.models.ModelVersion.STATES",
        "ArtifactKind": "apps.models.models.Artifact.KINDS",
        "StorageRunKind": "apps.models.models.StorageRun.KINDS",
        "ClaimState": "apps.quotas.models.Claim.STATES",
        "PipelineState": "apps.workflows.models.Pipeline.STATES",
        "StepKind": "apps.workflows.models.Step.KINDS",
        "StepState": "apps.workflows.models.Step.STATES",
        "DeploymentState": "apps.serving.models.Deployment.STATES",
        "ReplicaState": "apps.serving.models.Replica.STATES",
        "NewsKind": "apps.notifications.models.KINDS",
        "DeliveryState": "apps.notifications.models.DELIVERY_STATES",
        "CardState": "apps.fleet.models.Card.STATES",
        "FaultLevel": "apps.monitoring.models.Fault.LEVELS",
        "QueueState": "apps.quotas.models.Queue.STATES",
        "WhatIfState": "apps.quotas.models.WhatIf.STATES",
        "ComponentKind": "apps.console.api.KINDS",
        "Condition": "apps.console.api.CONDITIONS",
        "LoopHealth": "apps.console.api.HEALTHS",
        "AlertSeverity": "apps.monitoring.models.SEVERITIES",
        "AlertState": "apps.monitoring.models.Alert.STATES",
        "ReceiverKind": "apps.monitoring.models.AlertReceiver.KINDS",
        "RolloutState": "apps.monitoring.models.Rollout.STATES",
        "RolloutNodeState": "apps.monitoring.models.RolloutNode.STATES",
        "Role": "apps.accounts.models.Membership.ROLES",
        "CompanyRole": "apps.accounts.models.CompanyRoleBinding.ROLES",
        "Scope": "apps.accounts.models.PersonalToken.SCOPES",
    },
    "TAGS": [
        {"name": "accounts", "description": "Who you are, your teams and tokens."},
        {"name": "datasets", "description": "Rows to train and test on."},
        {"name": "models", "description": "Models, their versions and what was measured on them."},
        {"name": "catalog", "description": "What is publicly known of models, and where they run."},
        {
            "name": "storage",
            "description": "What uses space, quotas, and what is kept for how long.",
        },
        {"name": "jobs", "description": "Fine-tunes, evaluations and scripts."},
        {"name": "pipelines", "description": "Several jobs and a deployment as one piece of work."},
        {"name": "serving", "description": "Deployments, gateway keys and usage."},
        {"name": "scheduling", "description": "Queues, and what waits in them."},
        {"name": "fleet", "description": "Clusters, nodes and cards."},
        {"name": "health", "description": "Faults, what is out of use, and what decides about it."},
        {"name": "alerts", "description": "What fires, by which rules, and who is told."},
        {"name": "rollouts", "description": "Maintenance of nodes, batch by batch."},
        {"name": "operations", "description": "How Ninefold itself does."},
        {"name": "notifications", "description": "What you are told, and webhooks of your teams."},
        {"name": "attempts", "description": "For running work only, by its own token."},
    ],
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "text": {"()": "controlplane.web.logs.WebTextFormatter"},
        "json": {"()": "controlplane.web.logs.WebJsonFormatter"},
    },
    "filters": {"context": {"()": "controlplane.web.logs.LogContextFilter"}},
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": require_one_of("NINEFOLD_LOG_FORMAT", ("text", "json")),
            "filters": ["context"],
        }
    },
    # The audit log records sign-ins.
    "loggers": {"axes": {"level": "ERROR"}},
    "root": {"handlers": ["stderr"], "level": env.str("NINEFOLD_LOG_LEVEL", default="INFO")},
}

UNFOLD = {
    "SITE_TITLE": "Ninefold",
    "SITE_HEADER": "Ninefold",
    "SITE_FAVICONS": [
        {
            "rel": "icon",
            "type": "image/svg+xml",
            "href": lambda _request: static("img/ninefold.svg"),
        }
    ],
}
