"""Django's settings. Only this module reads the environment. One message names all invalid variables."""

import json
import os
from importlib.util import find_spec
from multiprocessing import cpu_count
from pathlib import Path
from typing import cast

from django import VERSION
from django.core.exceptions import ImproperlyConfigured
from environs import Env, EnvValidationError

from payments.conf import private_directory
from payments_site.environment import (
    PARSERS,
    POSTGRESQL,
    describe_errors,
    describe_misspelt,
    is_strong,
    read_or_create_secret,
)
from payments_site.processors import usable_processors
from payments_site.sign_in import SECOND_FACTORS, SIGN_IN_PARSERS, sign_in_errors

PACKAGE = Path(__file__).resolve().parent
BASE_DIR = PACKAGE.parent
DATA_DIR = BASE_DIR / "var"

# A wheel has the static files in this package. An installed package writes nothing beside itself.
IS_INSTALLED = (PACKAGE / "staticfiles").is_dir()
INSTALL_EXTRA = "pip install 'payments-site[{}]'" if IS_INSTALLED else "scripts/install --{}"

# The environment

env = Env(eager=False)
for parser in (*PARSERS, *SIGN_IN_PARSERS):
    env.add_parser(parser.__name__, parser)

DEBUG = env.flag("DEBUG", "false")
SECRET_KEY = env.str("SECRET_KEY", "")
SECRET_KEY_FALLBACKS = env.secret_keys("SECRET_KEY_FALLBACKS", "")
database_url = env.str("DATABASE_URL", "")  # in lower case, Django does not show it on its page for developers
DATABASES = {"default": env.database("DATABASE_URL", f"sqlite:///{DATA_DIR}/payments.sqlite3")}
replica_url = env.str("DATABASE_REPLICA_URL", "")
if replica_url:
    DATABASES["replica"] = env.database("DATABASE_REPLICA_URL") or {}
PAYMENTS_REPLICA_LAG_SECONDS_MAX = env.seconds("REPLICA_LAG_SECONDS_MAX", "10", minimum=1, maximum=300)
ALLOWED_HOSTS = env.hosts("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
PAYMENTS_PUBLIC_BASE_URL = env.base_url("PUBLIC_BASE_URL", "")
PAYMENTS_TRUST_PROXY = env.flag("TRUST_PROXY", "false")
PAYMENTS_DEFAULT_TIME_ZONE = env.time_zone("DEFAULT_TIME_ZONE", "UTC")
PAYMENTS_RATE_LIMIT = env.rate("RATE_LIMIT", "")
PAYMENTS_REQUEST_SECONDS_MAX = env.duration("REQUEST_SECONDS_MAX", "2.5", minimum=1, maximum=60)
PAYMENTS_ACCESS_LOG = env.flag("ACCESS_LOG", "false")
PAYMENTS_METRICS = env.flag("METRICS", "false")
PAYMENTS_TRACING = env.flag("TRACING", "false")
PAYMENTS_RUNTIME_DIRECTORY = env.directory("RUNTIME_DIRECTORY", "") or (
    private_directory() if IS_INSTALLED else DATA_DIR / "run"
)
HOST = env.str("HOST", "") or "127.0.0.1"
PORT = env.number("PORT", "", maximum=65535) or 8000
WEB_WORKERS = env.number("WEB_WORKERS", "", maximum=1000) or usable_processors()
# Granian warns if there are more threads: more than 3 with one processor, more than 5 with two.
PAYMENTS_WEB_THREADS = env.number("WEB_THREADS", "", maximum=100) or (5 if cpu_count() > 1 else 3)
HSTS_SECONDS = env.seconds("HSTS_SECONDS", "0", minimum=0)
PAYMENTS_OIDC_ISSUER = env.issuer("OIDC_ISSUER", "")
PAYMENTS_OIDC_CLIENT_ID = env.str("OIDC_CLIENT_ID", "")
PAYMENTS_OIDC_CLIENT_SECRET = env.str("OIDC_CLIENT_SECRET", "")
PAYMENTS_OIDC_NAME = env.str("OIDC_NAME", "")
PAYMENTS_OIDC_EMAIL_DOMAINS = env.domains("OIDC_EMAIL_DOMAINS", "")
PAYMENTS_OIDC_REQUIRED_CLAIM = env.claim("OIDC_REQUIRED_CLAIM", "")
PAYMENTS_OIDC_NEW_USER_GROUP = env.str("OIDC_NEW_USER_GROUP", "")
PAYMENTS_OIDC_ROLE_CLAIM = env.str("OIDC_ROLE_CLAIM", "")
PAYMENTS_OIDC_ORGANIZATIONS_CLAIM = env.str("OIDC_ORGANIZATIONS_CLAIM", "")
PAYMENTS_PASSWORD_LOGIN = env.flag("PASSWORD_LOGIN", "on")
PAYMENTS_SECOND_FACTOR = env.choice("SECOND_FACTOR", "off", choices=SECOND_FACTORS)
PAYMENTS_SESSION_IDLE_SECONDS = env.seconds("SESSION_IDLE_SECONDS", "3600", minimum=60, maximum=43_200)

errors: dict[str, list[str]] = {}
try:
    env.seal()
except EnvValidationError as error:
    errors.update(cast("dict[str, list[str]]", error.error_messages))
if not errors and replica_url and any(using["ENGINE"] != POSTGRESQL["ENGINE"] for using in DATABASES.values()):
    errors["DATABASE_REPLICA_URL"] = ["Must be a PostgreSQL URI, and so must DATABASE_URL."]
if IS_INSTALLED and not database_url:
    errors["DATABASE_URL"] = ["Must be set: postgresql://USER:PASSWORD@HOST:PORT/NAME, or sqlite:////PATH."]
if (IS_INSTALLED or database_url) and not SECRET_KEY:
    condition = "" if IS_INSTALLED else " if DATABASE_URL is set"
    errors["SECRET_KEY"] = [f"Must be set{condition}: at least 50 random characters."]
for name, keys in {"SECRET_KEY": [SECRET_KEY or ""], "SECRET_KEY_FALLBACKS": SECRET_KEY_FALLBACKS or []}.items():
    if not DEBUG and any(key and not is_strong(key) for key in keys):
        errors[name] = ["Must be at least 50 random characters."]
if PAYMENTS_TRACING and not find_spec("opentelemetry"):
    errors["TRACING"] = [f"Must be false, or run {INSTALL_EXTRA.format('tracing')} first."]
if not errors:
    install_packages = "" if find_spec("allauth") else INSTALL_EXTRA.format("sign-in")
    errors.update(sign_in_errors(globals(), install_packages=install_packages))
# manage.py prints these sentences, so that a start prints them once.
PAYMENTS_SETTINGS_WARNINGS = describe_misspelt(os.environ, known={*env.dump(), *errors})
if errors:
    raise ImproperlyConfigured(" ".join([describe_errors(errors), *PAYMENTS_SETTINGS_WARNINGS]))
if VERSION < (6,) and not find_spec("csp"):
    raise ImproperlyConfigured("Django 5.2 needs the package django-csp. Install it, or use Django 6.1.")

try:
    if not database_url:
        DATA_DIR.mkdir(mode=0o700, exist_ok=True)
    if not SECRET_KEY:
        SECRET_KEY = read_or_create_secret(DATA_DIR / "secret_key")
except OSError as error:
    next_step = f"Make {DATA_DIR} writable for this user, or set DATABASE_URL and SECRET_KEY."
    raise ImproperlyConfigured(f"{error.filename}: {error.strerror}. {next_step}") from error

# The application

INSTALLED_APPS = [
    "payments_site.apps.PaymentsSiteConfig",
    "payments",
    "payments.admin.apps.PaymentsAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular_sidecar",
]

MIDDLEWARE = [
    "payments.service.middleware.Observation",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware" if VERSION < (6,) else "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "payments.service.middleware.HostCheck",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "payments.service.middleware.Sessions",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    *(["payments.service.middleware.MigrationPage"] if DEBUG else []),
]

ROOT_URLCONF = "payments_site.urls"
DEFAULT_EXCEPTION_REPORTER = "payments.service.error_pages.DebugReport"
CSRF_FAILURE_VIEW = "payments.service.error_pages.csrf_failure"
WSGI_APPLICATION = "payments_site.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASE_ROUTERS = ["payments.runtime.servers.PrimaryRouter"] if replica_url else []
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
FORMAT_MODULE_PATH = "payments_site.formats"

# Collected by scripts/install, or by the build of a wheel. Pages link to names with a hash, which browsers keep.
STATIC_URL = "static/"
STATIC_ROOT = (PACKAGE if IS_INSTALLED else BASE_DIR) / "staticfiles"
STORAGES = {"staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"}}

# No other hasher: a worker would compute several of its hashes at a time.
PASSWORD_HASHERS = ["payments.access.password_hasher.SerialPasswordHasher"]

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

# Staff sign in with a password, at an OpenID provider, or both. A session records how, and ends if that way is removed.
AUTHENTICATION_BACKENDS = [
    *(["django.contrib.auth.backends.ModelBackend"] if PAYMENTS_PASSWORD_LOGIN else []),
    *(["payments.admin.sign_in.backend.SingleSignOnBackend"] if PAYMENTS_OIDC_ISSUER else []),
]

# Sessions end twelve hours after the login, or earlier if they are not used.
SESSION_ENGINE = "payments.admin.sessions"
SESSION_COOKIE_AGE = 43_200

# django-allauth is an extra: without these settings, it is not imported.
if PAYMENTS_OIDC_ISSUER or PAYMENTS_SECOND_FACTOR != "off":
    INSTALLED_APPS.append("allauth.account")
    MIDDLEWARE.append("allauth.account.middleware.AccountMiddleware")
    ACCOUNT_ADAPTER = "payments.admin.sign_in.adapters.AccountAdapter"
    ACCOUNT_EMAIL_VERIFICATION = "none"  # the service sends no e-mail
    ACCOUNT_RATE_LIMITS = False  # payments/admin/login.py has the limits, which all workers share
if PAYMENTS_OIDC_ISSUER:
    INSTALLED_APPS.append("allauth.socialaccount")
    SOCIALACCOUNT_ADAPTER = "payments.admin.sign_in.adapters.SingleSignOnAdapter"
if PAYMENTS_SECOND_FACTOR != "off":
    INSTALLED_APPS.append("allauth.mfa")
    MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
    MFA_TOTP_TOLERANCE = 1  # also the codes before and after the current one: clocks differ

# Pages load content from this service only.
SECURE_CSP = {
    "default-src": ["'none'"],
    "script-src": ["'self'"],
    "style-src": ["'self'"],
    "img-src": ["'self'"],
    "font-src": ["'self'"],
    "connect-src": ["'self'"],
    "form-action": ["'self'"],
    "base-uri": ["'none'"],
    "frame-ancestors": ["'none'"],
}
CONTENT_SECURITY_POLICY = {"DIRECTIVES": SECURE_CSP}  # django-csp, for Django 5.2

# TLS ends at the reverse proxy. Its headers are used only with TRUST_PROXY.

SERVED_OVER_TLS = PAYMENTS_PUBLIC_BASE_URL.startswith("https://")
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if PAYMENTS_TRUST_PROXY else None
USE_X_FORWARDED_HOST = PAYMENTS_TRUST_PROXY

SECURE_SSL_REDIRECT = SERVED_OVER_TLS and PAYMENTS_TRUST_PROXY
SECURE_REDIRECT_EXEMPT = [r"^v2(/|$)"]  # a redirect loses the Authorization header
SECURE_HSTS_SECONDS = HSTS_SECONDS
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SERVED_OVER_TLS
SILENCED_SYSTEM_CHECKS = [
    # The owner of the domain decides whether HSTS includes subdomains and browsers' preload lists.
    "security.W005",
    "security.W021",
]

# Granian gets this file too, so that all log lines have the same format.
LOGGING = json.loads((PACKAGE / "logging.json").read_text())
if DEBUG:
    LOGGING["handlers"]["console"]["formatter"] = "line"
    LOGGING["loggers"]["django"]["level"] = "INFO"
