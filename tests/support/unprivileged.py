"""Programs that cannot read and write files without permission, even if root runs the tests."""

import os
from typing import Final

ROOT_MAY_NOT: Final = "-dac_override,-dac_read_search"

# The start of a command. Root keeps its files, but loses the right to ignore permissions.
UNPRIVILEGED: Final = (
    ("setpriv", "--bounding-set", ROOT_MAY_NOT, "--inh-caps", ROOT_MAY_NOT) if os.geteuid() == 0 else ()
)
