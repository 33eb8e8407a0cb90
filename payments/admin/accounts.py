"""Users in the admin: their role, their organizations, and the state of their second factor.

Editors grant only the role and the organizations that they have. Users cannot be deleted: a user who has left is made
inactive, which ends the sessions, and stays in the history.
"""

from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.contrib.auth import admin as django_pages
from django.contrib.auth.forms import AdminUserCreationForm, UserChangeForm
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.html import format_html

from payments.admin.base import KeysField, StrictAdmin
from payments.admin.forms import MENU_CHOICES_MAX
from payments.admin.grants import (
    ALL_CODENAME,
    assign_organizations,
    assign_role,
    assignable_roles,
    is_last_superuser,
    manageable_users,
    other_groups,
    role_of,
    scope_of_account,
)
from payments.admin.login import end_sessions
from payments.admin.payments.form import WordsInput
from payments.admin.scope import ALL_ORGANIZATIONS, EVERYTHING, Scope
from payments.conf import conf
from payments.models import Organization, Role

NAMES_MAX = 3

ACCESS = ("role", "all_organizations", "organizations")
FACTS = ("username", "first_name", "last_name", "email", "is_active")
PASSWORD = ("usable_password", "password1", "password2")
TIMES = ("last_login", "date_joined")
ADVANCED = ("is_staff", "is_superuser", "user_permissions")

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
        self.fields["role"].choices = [("", "No role"), *roles]  # type: ignore[attr-defined]
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


admin.site.unregister([Group, User])


@admin.register(User)
class UserAdmin(StrictAdmin, django_pages.UserAdmin):  # type: ignore[type-arg]
    """The users whom the editor may change. A superuser also sees single permissions."""

    form = ChangeUserForm
    add_form = AddUserForm
    add_form_template = None
    change_list_template = "admin/payments/change_list.html"
    change_form_template = "admin/payments/change_form.html"
    list_filter = ("is_active",)
    filter_horizontal = ()
    show_facets = admin.ShowFacets.NEVER

    class Media:
        css = {"all": ["admin/css/unusable_password_field.css"]}
        js = ["admin/js/unusable_password_field.js"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        users = manageable_users(request.user)
        return users if conf.SECOND_FACTOR == "off" else users.prefetch_related("authenticator_set")  # type: ignore[misc]

    def get_list_display(self, request: HttpRequest) -> Any:
        factor = () if conf.SECOND_FACTOR == "off" else ("has_second_factor",)
        return ("username", "email", "role", "organizations", "last_login", *factor, "is_active")

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        """Return the fields of a user. Only a superuser sees single permissions, and who else is a superuser."""
        access = ACCESS if request.user.has_perm(ALL_ORGANIZATIONS) else ("role", "organizations")
        if obj is None:
            facts = (None, {"fields": (*FACTS[:-1], *access)})
            password = ("Password", {"fields": PASSWORD if conf.OIDC_ISSUER else PASSWORD[1:]})
            return [facts, password] if conf.PASSWORD_LOGIN else [facts]
        links = self.links(request, obj)
        fieldsets: list[Any] = [(None, {"fields": (*FACTS, *links, *TIMES)}), ("Access", {"fields": access})]
        if request.user.is_superuser:
            groups = ("groups",) if other_groups().exists() else ()
            fieldsets.append(("Advanced", {"classes": ["collapse"], "fields": (*ADVANCED, *groups)}))
        return fieldsets

    def links(self, request: HttpRequest, user: User) -> tuple[str, ...]:
        """Return the fields with links that only users who may change the user can follow."""
        if not self.has_change_permission(request, user):
            return ()
        return ("password_link",) if conf.SECOND_FACTOR == "off" else ("password_link", "second_factor")

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        return (*TIMES, *(self.links(request, obj) if obj else ()))

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any) -> Any:  # noqa: FBT001, FBT002
        form = super().get_form(request, obj, change=change, **options)
        form.editor = request.user  # type: ignore[attr-defined]
        return form

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:  # noqa: FBT001
        """Save the user. A new user may use the admin."""
        obj.is_staff = obj.is_staff or not change
        super().save_model(request, obj, form, change)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:  # noqa: FBT001
        super().save_related(request, form, formsets, change)
        form.save_access()

    def response_add(self, request: HttpRequest, obj: User, post_url_continue: str | None = None) -> HttpResponse:
        """Continue with the list: the page of a new user asked for everything."""
        return admin.ModelAdmin.response_add(self, request, obj, post_url_continue)

    @admin.display(description="role")
    def role(self, user: User) -> str:
        """Return the role, and the groups that are not roles."""
        names = ["Superuser"] if user.is_superuser else sorted(group.name for group in user.groups.all())
        return ", ".join(names) or "None"

    @admin.display(description="organizations")
    def organizations(self, user: User) -> str:
        """Return the number of organizations, or their names if there are few."""
        scope = EVERYTHING if user.is_superuser else scope_of_account(user)
        if scope.ids is None:
            return "All"
        names = sorted(str(row.organization) for row in user.staff_organizations.all())
        return ", ".join(names) or "None" if len(names) <= NAMES_MAX else f"{len(names)} organizations"

    @admin.display(description="all organizations", boolean=True)
    def all_organizations(self, user: User) -> bool:
        return scope_of_account(user).ids is None

    @admin.display(description="password")
    def password_link(self, user: User) -> str:
        state = "Set." if user.has_usable_password() else "None."
        address = reverse("admin:auth_user_password_change", args=[user.pk])
        return format_html('{} <a class="button" href="{}">Change the password</a>', state, address)

    @admin.display(description="second factor", boolean=True)
    def has_second_factor(self, user: Any) -> bool:
        return any(item.type == "totp" for item in user.authenticator_set.all())

    @admin.display(description="second factor")
    def second_factor(self, user: User) -> str:
        """Return the state of the second factor, with a link to reset it."""
        from payments.admin.sign_in.second_factor import describe  # noqa: PLC0415  imports django-allauth

        state = describe(user)
        if state is None:
            return "Not set up"
        address = reverse("admin:reset_second_factor", args=[user.pk])
        return format_html('{} <a class="button" href="{}">Reset</a>', state, address)

    def get_urls(self) -> list[Any]:
        reset = self.admin_site.admin_view(self.reset_view)
        return [path("<int:user_id>/reset-second-factor/", reset, name="reset_second_factor"), *super().get_urls()]

    def reset_view(self, request: HttpRequest, user_id: int) -> HttpResponse:
        """Ask for confirmation; on POST, remove the second factor of a user, and end the sessions."""
        if conf.SECOND_FACTOR == "off" or not self.has_change_permission(request):
            raise PermissionDenied
        user = get_object_or_404(self.get_queryset(request), pk=user_id)
        if user == request.user:  # the own page asks for a code
            return HttpResponseRedirect(reverse("admin:second_factor_change"))
        if request.method == "POST":
            from payments.admin.sign_in.second_factor import remove  # noqa: PLC0415  imports django-allauth

            with transaction.atomic():
                remove(user)
                end_sessions(user)
                self.log_change(request, user, "Reset the second factor.")
            messages.success(request, f"The second factor of {user} is removed, and the sessions have ended.")
            return HttpResponseRedirect(reverse("admin:auth_user_change", args=[user.pk]))
        context = self.page_context(request, "Reset the second factor?", account=user)
        return TemplateResponse(request, "admin/payments/reset_second_factor.html", context)
