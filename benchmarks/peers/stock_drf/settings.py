"""Settings of the stock peer."""

import os
from typing import Any

from psycopg.conninfo import conninfo_to_dict

parameters = conninfo_to_dict(os.environ["DATABASE_URL"])

SECRET_KEY = os.environ["SECRET_KEY"]
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "benchmarks.peers.stock_drf.urls"
INSTALLED_APPS = ["rest_framework", "benchmarks.peers.stock_drf"]
MIDDLEWARE = ["django.middleware.security.SecurityMiddleware", "django.middleware.common.CommonMiddleware"]
USE_TZ = True
TIME_ZONE = "UTC"
DATABASES: dict[str, Any] = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parameters["dbname"],
        "USER": parameters.get("user", ""),
        "HOST": parameters["host"],
        "CONN_MAX_AGE": None,
    }
}
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["benchmarks.peers.stock_drf.authentication.KeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "UNAUTHENTICATED_USER": None,
}
