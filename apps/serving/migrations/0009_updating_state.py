from django.db import migrations, models

import controlplane.domain.serving.lifecycle


class Migration(migrations.Migration):
    dependencies = [
        ("serving", "0008_paused_rollouts"),
    ]

    operations = [
        migrations.AlterField(
            model_name="deployment",
            name="state",
            field=models.CharField(
                choices=[
                    ("starting", "starting"),
                    ("ready", "ready"),
                    ("updating", "updating"),
                    ("degraded", "degraded"),
                    ("stopping", "stopping"),
                    ("stopped", "stopped"),
                ],
                default=controlplane.domain.serving.lifecycle.DeploymentState["STARTING"],
                max_length=20,
            ),
        ),
    ]
