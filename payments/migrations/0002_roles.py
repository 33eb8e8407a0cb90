"""The groups of the roles of staff (`payments.models.Role`). An existing group of the same name stays as it is."""

from django.conf import settings
from django.db import migrations

from payments.models import Role

VIEWER = [("payments", "view_payment"), ("payments", "view_organization")]
KEY_MANAGER = [*VIEWER, *(("payments", f"{action}_apikey") for action in ("view", "add", "change"))]
USER_APP, USER_MODEL = settings.AUTH_USER_MODEL.lower().split(".")
ADMINISTRATOR = [
    *KEY_MANAGER,
    ("payments", "add_organization"),
    ("payments", "change_organization"),
    ("payments", "view_importrun"),
    ("payments", "view_paymentread"),
    ("payments", "anonymize_payment"),
    *((USER_APP, f"{action}_{USER_MODEL}") for action in ("view", "add", "change")),
]
PERMISSIONS = {Role.VIEWER: VIEWER, Role.KEY_MANAGER: KEY_MANAGER, Role.ADMINISTRATOR: ADMINISTRATOR}


def create_roles(apps, schema_editor=None):
    """Create the missing groups. Django creates the permissions only after all migrations, so create them here too."""
    groups = apps.get_model("auth", "Group").objects
    for role, names in PERMISSIONS.items():
        group, is_new = groups.get_or_create(name=role.value)
        if is_new:
            group.permissions.set([permission(apps, app_label, codename) for app_label, codename in names])


def permission(apps, app_label, codename):
    action, model = codename.split("_")
    content_types = apps.get_model("contenttypes", "ContentType").objects
    content_type, _ = content_types.get_or_create(app_label=app_label, model=model)
    permissions = apps.get_model("auth", "Permission").objects
    values = {"content_type": content_type, "codename": codename}
    return permissions.get_or_create(**values, defaults={"name": f"Can {action} {model}"})[0]


class Migration(migrations.Migration):

    dependencies = [
        ('payments', '0001_tables_8'),
        ('auth', '0012_alter_user_first_name_max_length'),
        ('contenttypes', '0002_remove_content_type_name'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [migrations.RunPython(create_roles, migrations.RunPython.noop)]
