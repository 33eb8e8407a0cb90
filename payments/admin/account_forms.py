"""The forms of users: each editor grants only the role and the organizations that the editor has."""

from typing import Any, cast

from django import forms
from django.contrib.auth.forms import AdminUserCreationForm, UserChangeForm
from django.contrib.auth.models import AnonymousUser, Permission, User
from django.db.models import Q

from payments.admin.base import KeysField
from payments.admin.forms import MENU_CHOICES_MAX
from payments.admin.grants import (
    ALL_CODENAME,
    assign_organizations,
    assign_role,
    assignable_roles,
    is_last_superuser,
    other_groups,
    role_of,
    scope_of_account,
)
from payments.admin.payments.form import WordsInput
from payments.admin.scope import Scope
from payments.conf import conf
from payments.models import Organization, Role

NO_ROLE = "No role"
LAST_SUPERUSER = "This is the last superuser. Make another user a superuser first."


class AccessFields(forms.ModelForm):  # type: ignore[type-arg]
    """The role and the organizations of a user, of those that the editor may grant."""

    role = forms.ChoiceField(required=False)
    all_organizations = forms.BooleanField(label="All organizations", required=False)
    organizations = KeysField(Organization.objects.none(), required=False, widget=WordsInput("Others, by their IDs"))

    editor: User | AnonymousUser

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "role" not in self.fields:  # the editor may only view the user
            return
        roles = [(role.value, role.label) for role in assignable_roles(self.editor)]
        self.fields["role"].choices = [("", NO_ROLE), *roles]  # type: ignore[attr-defined]
        self.offer_organizations(Scope.of(self.editor))
        self.initial = {**self.initial, **stored_access(self.instance)} if self.instance.pk else {}

    def offer_organizations(self, scope: Scope) -> None:
        """Offer a checkbox for each organization. Of too many, the editor enters the IDs.

        An editor of some organizations would not see a user without organizations again.
        """
        field = cast("KeysField", self.fields["organizations"])
        field.queryset, field.required = scope.organizations, scope.ids is not None
        choices = [(str(item.pk), f"{item} ({item.pk})") for item in scope.organizations[: MENU_CHOICES_MAX + 1]]
        field.widget.choices = choices if len(choices) <= MENU_CHOICES_MAX else []
        if scope.ids is not None:
            del self.fields["all_organizations"]

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        loses_rights = not (
            values.get("is_superuser", True) and values.get("is_active") and values.get("is_staff", True)
        )
        if self.instance.pk and self.initial.get("is_superuser") and loses_rights and is_last_superuser(self.instance):
            raise forms.ValidationError(LAST_SUPERUSER)
        return values

    def save_access(self) -> None:
        """Store the role and the organizations of the saved user."""
        values = self.cleaned_data
        assign_role(self.instance, Role(values["role"]) if values["role"] else None)
        ids = frozenset(values["organizations"].values_list("pk", flat=True))
        assign_organizations(self.instance, Scope(None if values.get("all_organizations") else ids))


def stored_access(user: User) -> dict[str, Any]:
    """Return the initial values of the fields."""
    scope, role = scope_of_account(user), role_of(user)
    ids = [str(number) for number in sorted(scope.ids or ())]
    return {"role": role.value if role else "", "all_organizations": scope.ids is None, "organizations": ids}


class AddUserForm(AccessFields, AdminUserCreationForm):  # type: ignore[type-arg]
    """A new user, who can log in at once."""

    class Meta(AdminUserCreationForm.Meta):
        fields = ("username", "first_name", "last_name", "email")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["username"].widget.attrs.pop("autofocus", None)  # a script of the admin focuses the first field
        self.fields["email"].required = not conf.PASSWORD_LOGIN  # single sign-on finds the user by it
        choice = self.fields["usable_password"]
        choice.label, choice.help_text = "Log in with", ""
        choice.choices = {"true": "A password", "false": "Single sign-on only"}  # type: ignore[attr-defined]

    def clean_usable_password(self) -> str:
        """Return `false` for a user without a password."""
        return "false" if not conf.PASSWORD_LOGIN else self.cleaned_data["usable_password"]


class ChangeUserForm(AccessFields, UserChangeForm):  # type: ignore[type-arg]
    """A user. The groups of the roles and the permission for all organizations have their own fields."""

    password = None  # type: ignore[assignment]  # Django's way to remove a field

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        fields: dict[str, Any] = self.fields
        if "user_permissions" in fields:
            is_used = Q(content_type__app_label__in=["auth", "payments"]) | Q(user=self.instance)
            permissions = Permission.objects.filter(is_used).exclude(codename=ALL_CODENAME).distinct()
            fields["user_permissions"].queryset = permissions.select_related("content_type")
        if "groups" in fields:
            fields["groups"].queryset, fields["groups"].label = other_groups(), "Other groups"
            self.initial["groups"] = list(other_groups().filter(user=self.instance))
