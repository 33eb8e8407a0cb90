"""Settings of a service that hashes passwords with few iterations, for tests that do not test hashing."""

import os

if "COVERAGE_PROCESS_CONFIG" in os.environ:
    from tests.support.covered import *  # noqa: F403
else:
    from payments_site.settings import *  # noqa: F403

PASSWORD_HASHERS = ["tests.support.password_hashing.QuickHasher"]
