"""Jobs, their attempts, and reports of attempts."""

from __future__ import annotations

from django.db import models

from apps.accounts.models import Team, User
from apps.fleet.models import Cluster
from apps.models.models import Artifact, DatasetVersion, ModelVersion
from apps.quotas.models import PriorityClass, Queue
from controlplane.domain.jobs.lifecycle import AttemptState, JobKind, JobState
from controlplane.domain.jobs.retries import RetryPolicy
from controlplane.persistence.models import LeasedModel, Transition, UidModel
from controlplane.persistence.reasons import ReasonField


class Job(UidModel):
    """A request with an end; see ``controlplane.domain.jobs.lifecycle`` for its states."""

    KINDS = [(kind.value, kind.value) for kind in JobKind]
    STATES = [(state.value, state.value) for state in JobState]

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="jobs")
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="jobs")
    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=20, choices=KINDS)
    state = models.CharField(max_length=20, choices=STATES, default=JobState.WAITING)
    #: Reason of the current state, as a message.
    state_reason = ReasonField()
    engine = models.CharField(max_length=40)
    #: The engine's fields with every default filled in.
    spec = models.JSONField()
    model_version = models.ForeignKey(
        ModelVersion, on_delete=models.PROTECT, null=True, blank=True, related_name="jobs"
    )
    dataset_version = models.ForeignKey(
        DatasetVersion, on_delete=models.PROTECT, null=True, blank=True, related_name="jobs"
    )
    #: The archive of a script job.
    code = models.ForeignKey(
        Artifact, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    #: Name of the model that its output becomes a version of; empty for no model.
    output_name = models.SlugField(max_length=80, blank=True)
    #: Every team may use the model that it creates.
    output_shared = models.BooleanField(default=False)
    queue = models.ForeignKey(Queue, on_delete=models.PROTECT, related_name="jobs")
    #: Acceptable chips, the preferred first.
    chips = models.JSONField()
    #: The requested chips where they differ from ``chips``: ``["any"]``, ``["gpu"]`` …; None where they do not.
    asked_chips = models.JSONField(null=True, blank=True)
    #: ``GangShape.as_json()``.
    shape = models.JSONField()
    priority = models.IntegerField(default=0)
    #: The class that had this priority when the job was submitted; its value may have changed since.
    priority_class = models.ForeignKey(
        PriorityClass,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
    )
    #: An attempt is stopped after this many seconds; None means no limit.
    run_seconds = models.PositiveIntegerField(null=True, blank=True)
    #: ``RetryPolicy.as_json()``; fields that are absent have their defaults.
    retry_policy = models.JSONField(
        default=dict, blank=True, db_default=models.Value({}, models.JSONField())
    )
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    cancel_requested_by = models.CharField(max_length=150, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        indexes = (
            models.Index(fields=("team", "-id")),
            models.Index(fields=("state", "-id")),
        )

    @property
    def resolved_retry_policy(self) -> RetryPolicy:
        return RetryPolicy.from_json(self.retry_policy)


class SecretVariable(models.Model):
    """A secret environment variable of a job; only a Launch reads its value."""

    MAX_NAME_LENGTH = 128

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="secret_variables")
    name = models.CharField(max_length=MAX_NAME_LENGTH)
    #: Encrypted at rest; None once no attempt of the job needs it any more.
    value = models.BinaryField(null=True)

    class Meta:
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(fields=("job", "name"), name="secret_variable_once"),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def set(self) -> bool:
        return self.value is not None


class JobTransition(Transition):
    entity = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="transitions")


class Attempt(UidModel, LeasedModel):
    """One run of a job."""

    STATES = [(state.value, state.value) for state in AttemptState]

    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="attempts")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=20, choices=STATES, default=AttemptState.PENDING)
    #: Current status, or why it ended.
    message = ReasonField()
    #: Empty until the back-off of a retry is over, which requests the claim.
    claim_uid = models.CharField(max_length=32, blank=True, db_index=True)
    cluster = models.ForeignKey(
        Cluster, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    chip = models.CharField(max_length=60, blank=True)
    #: The attempt whose checkpoints this one continues from.
    continues = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    #: Fields of the spec that differ from the job's, by path, after an attempt ran out of memory.
    overrides = models.JSONField(null=True, blank=True)
    #: Automatic retries of the job up to this attempt, since it was submitted or retried by hand.
    retries = models.PositiveSmallIntegerField(default=0, db_default=0)
    #: ``RetryCause`` of the previous attempt, if this one is an automatic retry.
    retry_cause = models.CharField(max_length=20, blank=True, db_default="")
    #: When the back-off before this retry is over.
    starts_after = models.DateTimeField(null=True, blank=True)
    #: Why it is being stopped: ``cancelled``, ``preempted``, ``fault``, ``drain``.
    stop_reason = models.CharField(max_length=20, blank=True)
    exit_code = models.IntegerField(null=True, blank=True)
    #: ``ExitCause`` of the first replica that failed.
    exit_cause = models.CharField(max_length=20, blank=True)
    #: The last lines of its log, stored when it fails.
    log_tail = models.TextField(blank=True)
    #: Digest of the whole log, stored when the attempt has ended.
    log_digest = models.CharField(max_length=80, blank=True)
    #: The newest reported value of each metric.
    progress = models.JSONField(default=dict, blank=True)
    reported_at = models.DateTimeField(null=True, blank=True)
    #: Manifest of its outputs, reported last.
    manifest = models.JSONField(null=True, blank=True)
    admitted_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    #: When the working folder on the cluster was marked as removed.
    removed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("number",)
        constraints = (
            models.UniqueConstraint(fields=("job", "number"), name="attempt_number"),
            models.UniqueConstraint(
                fields=("job",),
                condition=~models.Q(
                    state__in=(AttemptState.SUCCEEDED, AttemptState.FAILED, AttemptState.STOPPED)
                ),
                name="attempt_one_live_per_job",
            ),
        )

    def __str__(self) -> str:
        return f"{self.job} attempt {self.number}"

    @property
    def in_backoff(self) -> bool:
        """Whether it is a retry that has not requested its claim yet."""
        return self.state == AttemptState.PENDING and not self.claim_uid

    @property
    def launch_name(self) -> str:
        """Derived from the uid, so that launching is idempotent."""
        return f"attempt-{self.uid}"


class AttemptTransition(Transition):
    entity = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="transitions")


class ProgressPoint(models.Model):
    """Metrics that an attempt reported at one step."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="points")
    step = models.PositiveIntegerField()
    at = models.DateTimeField()
    #: ``loss``, ``learning_rate``, ``tokens_per_second``, ``eval_loss`` …, as reported.
    values = models.JSONField()

    class Meta:
        ordering = ("step",)
        constraints = (
            models.UniqueConstraint(fields=("attempt", "step"), name="progress_point_once"),
        )

    def __str__(self) -> str:
        return f"{self.attempt} at step {self.step}"


class AttemptUpload(models.Model):
    """A file that an attempt has uploaded and not yet listed in its manifest."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="uploads")
    path = models.CharField(max_length=300)
    digest = models.CharField(max_length=80)
    size = models.BigIntegerField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("attempt", "path"), name="uploaded_path_once"),
        )

    def __str__(self) -> str:
        return self.path


class AttemptCheckpoint(models.Model):
    """A complete checkpoint in the artifact store, for attempts that continue from it."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="checkpoints")
    step = models.PositiveIntegerField()
    #: ``[{"path", "size", "sha256"}]``, with paths relative to the folder of the checkpoint.
    files = models.JSONField()
    #: Bytes of all files.
    size = models.BigIntegerField()
    stored_at = models.DateTimeField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("attempt", "step"), name="attempt_checkpoint_once"),
        )

    def __str__(self) -> str:
        return f"{self.attempt} at step {self.step}"


class UnfinishedUpload(models.Model):
    """A direct upload that an attempt has started and not completed; aborted when the attempt ends."""

    attempt = models.ForeignKey(
        Attempt, on_delete=models.CASCADE, related_name="unfinished_uploads"
    )
    path = models.CharField(max_length=300)
    #: Announced digest of the file; empty for uploads that an earlier version has started.
    sha256 = models.CharField(max_length=64, blank=True, default="", db_default="")
    size = models.BigIntegerField()
    started_at = models.DateTimeField()
    #: Identifies the upload to the artifact store; empty until it is started there.
    reference = models.TextField(blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("attempt", "path"), name="unfinished_upload_path_once"),
        )

    def __str__(self) -> str:
        return self.path


class SavedFilter(UidModel):
    """A saved query of the job list."""

    MAX_NAME_LENGTH = 60
    MAX_QUERY_LENGTH = 1000

    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="job_filters")
    name = models.CharField(max_length=MAX_NAME_LENGTH)
    #: Query string of the list's URL, without the question mark.
    query = models.CharField(max_length=MAX_QUERY_LENGTH)
    #: The list opens with this filter.
    is_default = models.BooleanField(default=False)

    class Meta:
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(fields=("owner", "name"), name="job_filter_name_once"),
            models.UniqueConstraint(
                fields=("owner",),
                condition=models.Q(is_default=True),
                name="job_filter_default_once",
            ),
        )
