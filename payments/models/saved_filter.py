"""The named filters of a user of the admin."""

from django.conf import settings
from django.db import models

NAME_CHARACTERS_MAX = 60
QUERY_CHARACTERS_MAX = 4000


class SavedFilter(models.Model):
    """A search of the payment list that a user has named. It applies to any organization and mode."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    name = models.CharField(max_length=NAME_CHARACTERS_MAX)
    query = models.CharField(max_length=QUERY_CHARACTERS_MAX)  # the fields of the list's form, as a query string

    class Meta:
        default_permissions = ()  # users change only their own
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="saved_filter_name_once")]

    def __str__(self) -> str:
        return self.name
