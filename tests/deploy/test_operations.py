"""Every command of the operator's guides works as it is written, as the user whom the guide names.

The commands run in a namespace of their own: with copies of /etc and /opt, and with PostgreSQL on a socket with peer
authentication. Its users, files and processes end with the namespace. Programs in PROGRAMS replace those that need
systemd or the network; tests/deploy/test_machine.py runs these too.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.lines import lines_with_order
from tests.support.processes import ROOT
from tests.support.tools import unavailable

pytestmark = [pytest.mark.once, pytest.mark.processes, pytest.mark.extended]

BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
CHECK = re.compile(r"^- `(SELECT [^`]+)`", re.MULTILINE)

BINARIES = Path("/usr/lib/postgresql/15/bin")

PROGRAMS = {
    **dict.fromkeys(("curl", "git", "journalctl", "systemctl"), "#!/bin/sh\n"),
    "systemd-run": """#!/bin/sh
for argument; do
    case $argument in
        --uid=*) user=${argument#*=} ;;
        --working-directory=*) cd "${argument#*=}" ;;
        --property=EnvironmentFile=*) file=${argument#*=*=} ;;
        -*) ;;
        *) break ;;
    esac
    shift
done
set -a
. "$file"
exec runuser -u "$user" -- "$@"
""",
}

# Python may be below the home directory of root, which other users cannot open. /opt/payments is this checkout.
PREPARE = """
mount -t tmpfs -o mode=755 tmpfs /opt
mkdir /opt/etc /opt/payments /opt/root /opt/run /opt/srv /opt/python
cp -a /etc/. /opt/etc
mount --bind "$CHECKOUT" /opt/payments
mount --bind "$PYTHON" /opt/python
case $PYTHON in
    "$HOME"/*) mount --bind /opt/root "$HOME"; mkdir -p "$PYTHON"; mount --bind /opt/python "$PYTHON" ;;
esac
for name in etc run srv; do mount --bind /opt/$name /$name; done
mkdir -p /etc/caddy /run/postgresql
chown postgres /run/postgresql
data=/run/postgresql/data
runuser -u postgres -- initdb --no-sync --auth=peer --encoding=UTF8 --locale=C.UTF-8 --pgdata=$data >/dev/null
options="-c listen_addresses= -c unix_socket_directories=/run/postgresql -c fsync=off"
runuser -u postgres -- pg_ctl --silent --wait --log=$data/log --options="$options" --pgdata=$data start
cp -R "$PROGRAMS" /opt/programs
chmod 755 /opt/programs
mkdir /opt/operator
mv /opt/programs/payments.jsonl /opt/operator
"""


def blocks(path: str) -> list[str]:
    """Return the command blocks of a document."""
    return BLOCK.findall((ROOT / path).read_text())


def indented_blocks(path: str) -> list[str]:
    return re.findall(r"^ {3}```sh\n(.*?)^ {3}```", (ROOT / path).read_text(), re.MULTILINE | re.DOTALL)


def psql(query: str) -> str:
    return f'runuser -u postgres -- psql payments --no-psqlrc --set=ON_ERROR_STOP=1 --command "{query}"\n'


def sections() -> Iterator[tuple[str, str]]:
    """Yield the name and the commands of each section. All sections run one after the other."""
    guide = (ROOT / "deploy/README.md").read_text().partition("## On a machine")[2].partition("\n## ")[0]
    _packages, *set_up = BLOCK.findall(guide)
    directory, dump, create, restore, compare, recover, back_up_sqlite = blocks("docs/operate/back-up.md")
    yield "set up", f"cd /opt/operator\n{''.join(set_up)}cd /opt/payments\n"
    yield "restore", f"{directory}{dump}RESTORED_URL='{RESTORED}'\n{create}{restore}{compare}"
    for name, broken in BROKEN.items():
        yield name, f"(\n{broken}\n{compare})\n"
    yield "lose", psql("UPDATE payments_payment SET description = 'lost'") + compare
    yield (
        "recover",
        (
            recover.replace(
                "DATABASE_URL=postgresql://payments:PASSWORD@127.0.0.1:5433/payments", f"DATABASE_URL={RESTORED}"
            )
            .replace("--customer-id ct_7", "--organization 7")
            .replace("before.jsonl", "/opt/operator/before.jsonl")
            + compare
        ),
    )
    work = "".join(blocks("docs/operate/routine.md")).replace("revoke_api_key 12", "revoke_api_key 1")
    yield "routine", f"cd /opt/operator\n{''.join(map(psql, checks()))}{work}cd /opt/payments\n"
    upgrade = re.sub("^ {3}", "", "".join(indented_blocks("docs/operate/upgrade.md")), flags=re.MULTILINE)
    yield "upgrade", upgrade.replace("scripts/install", ": scripts/install")
    yield (
        "SQLite",
        (
            "install -d -o payments -m 700 /opt/sqlite\n"
            "sed -i \"s|^DATABASE_URL=.*|DATABASE_URL='sqlite:////opt/sqlite/x'|\" /etc/payments/payments.env\n"
            f"manage migrate --verbosity 0\n{back_up_sqlite}ls -l /srv/backups\n"
        ),
    )


def checks() -> list[str]:
    """Return the queries of the regular checks, except that for Citus."""
    return [query for query in CHECK.findall((ROOT / "docs/operate/routine.md").read_text()) if "citus" not in query]


RESTORED = "postgresql:///payments_restored?host=/run/postgresql"
MISSING = "postgresql:///missing?host=/run/postgresql"

# Comparisons that must fail: an export fails, or both databases are empty.
BROKEN = {
    "no copy": f"RESTORED_URL='{MISSING}'",
    "no original": f"DATABASE_URL='{MISSING}'",
    "both empty": "DATABASE_URL='postgresql:///empty?host=/run/postgresql' RESTORED_URL=$DATABASE_URL\n"
    "runuser -u postgres -- createdb --owner payments --template payments_restored empty\n"
    "runuser -u postgres -- psql --quiet empty --command 'DELETE FROM payments_payment'",
}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Run all sections, and return the output of each section."""
    if os.geteuid() != 0 or not BINARIES.exists():
        unavailable("The operator's guides need root, and Debian's PostgreSQL 15 (apt-get install postgresql).")
    programs = tmp_path_factory.mktemp("programs")
    for name, text in PROGRAMS.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    (programs / "payments.jsonl").write_bytes(b"".join(lines_with_order(7, 30, order="first")))
    environment = {
        "PATH": f"/opt/programs:{BINARIES}:/usr/sbin:/usr/bin:/sbin:/bin",
        "CHECKOUT": str(ROOT),
        "HOME": str(Path.home()),
        "PYTHON": sys.base_prefix,
        "PROGRAMS": str(programs),
    }
    script = PREPARE + "".join(f"echo '== {name}'\n{commands}" for name, commands in sections())
    done = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-euc", f"exec 2>&1\n{script}"],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    parts = re.split(r"^== (.*)\n", done.stdout, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_set_up_imports_payments(outputs: dict[str, str]) -> None:
    assert "30 records read: 30 payments created" in outputs["set up"]


def test_restored_dump_equals_the_original(outputs: dict[str, str]) -> None:
    assert outputs["restore"] == "The payments are the same.\n"


@pytest.mark.parametrize("name", [*BROKEN, "lose"])
def test_comparison_fails_if_an_export_fails_is_empty_or_differs(outputs: dict[str, str], name: str) -> None:
    assert "The payments are the same." not in outputs[name]


def test_lost_values_are_recovered_from_the_old_state(outputs: dict[str, str]) -> None:
    assert "30 records read: 0 payments created, 30 changed" in outputs["recover"]
    assert outputs["recover"].endswith("The payments are the same.\n")


def test_regular_work_needs_no_other_user(outputs: dict[str, str]) -> None:
    assert len(checks()) == 4
    assert "Shop, from 2027" in outputs["routine"]


def test_upgrade_migrates_with_the_new_code(outputs: dict[str, str]) -> None:
    assert "No migrations to apply." in outputs["upgrade"]


def test_sqlite_database_is_backed_up_as_the_user_of_the_service(outputs: dict[str, str]) -> None:
    assert re.search(r"-rw------- 1 payments payments .* payments-20\d\d-\d\d-\d\d\.sqlite3", outputs["SQLite"])


def test_guides_have_no_other_commands() -> None:
    """A new block needs a section here."""
    guides = [path for path in (ROOT / "docs/operate").glob("*.md") if path.name != "containers.md"]  # without systemd

    counts = {path.name: len(blocks(f"docs/operate/{path.name}")) for path in guides}
    assert counts == {"back-up.md": 7, "routine.md": 2, "upgrade.md": 0, "problems.md": 0, "staff.md": 0}
    assert len(indented_blocks("docs/operate/upgrade.md")) == 1
