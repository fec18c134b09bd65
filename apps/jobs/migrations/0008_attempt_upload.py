from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0007_reasons_as_data"),
    ]

    operations = [
        migrations.RenameModel(old_name="UploadedFile", new_name="AttemptUpload"),
    ]
