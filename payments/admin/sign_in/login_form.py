"""The login form of users who need a second factor."""

from typing import Any

from django.conf import settings

from payments.admin.login import LoginForm, SecondFactorNeeded
from payments.admin.sign_in.second_factor import has_second_factor


class FirstFactorForm(LoginForm):
    """Checks the password. It does not let users log in who need a second factor."""

    def confirm_login_allowed(self, user: Any) -> None:
        super().confirm_login_allowed(user)
        if settings.SECOND_FACTOR == "required" or has_second_factor(user):
            raise SecondFactorNeeded(user)
