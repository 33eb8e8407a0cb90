"""Users in the admin: their role, their organizations, and the state of their second factor.

Users cannot be deleted: a user who has left is made inactive, which ends the sessions, and stays in the history.
"""

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth import admin as django_pages
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.html import format_html

from payments.admin.account_forms import AddUserForm, ChangeUserForm
from payments.admin.base import StrictAdmin
from payments.admin.grants import manageable_users, other_groups, scope_of_account
from payments.admin.login import end_sessions
from payments.admin.scope import ALL_ORGANIZATIONS, EVERYTHING
from payments.conf import conf

NAMES_MAX = 3

ACCESS = ("role", "all_organizations", "organizations")
FACTS = ("username", "first_name", "last_name", "email", "is_active")
PASSWORD = ("usable_password", "password1", "password2")
TIMES = ("last_login", "date_joined")
ADVANCED = ("is_staff", "is_superuser", "user_permissions")

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
