"""The service's settings, with passwords that cost no time to hash, and static files that are found when asked for."""

from payments_site.settings import *  # noqa: F403

PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.MD5PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",  # for users of a service that runs with its own settings
]

# Else each of a thousand test clients lists all static files first.
WHITENOISE_AUTOREFRESH = True
