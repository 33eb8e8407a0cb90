"""The settings of the service, with changes that make tests faster."""

from payments_site.settings import *  # noqa: F403

# Hashing a password in production takes a quarter of a second.
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.MD5PasswordHasher",
    "payments.access.password_hasher.SerialPasswordHasher",  # for users of a deployed service
]

# Find a static file when it is requested. Otherwise each of a thousand test clients first lists all static files.
STORAGES = {"staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}
WHITENOISE_AUTOREFRESH = WHITENOISE_USE_FINDERS = True
