from django.db import migrations

from controlplane.persistence.earlier_reasons import AlterToReason


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0006_names_of_fields"),
    ]

    operations = [
        AlterToReason("artifact", "deletion_reason"),
        AlterToReason("hubimport", "error"),
        AlterToReason("modelversion", "acceptance_reason"),
        AlterToReason("modelversiontransition", "reason"),
        AlterToReason("storagerun", "error"),
    ]
