"""The settings of the service, changed so that tests are faster."""

from payments_site.settings import *  # noqa: F403

# Hashing a password in production takes a quarter of a second.
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.MD5PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",  # for users of a service that runs with its own settings
]

# Find a static file when it is requested. Otherwise each of a thousand test clients first lists all static files.
WHITENOISE_AUTOREFRESH = True
