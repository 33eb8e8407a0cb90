"""Start scripts/serve, run the curl line that it prints, and follow `next` to the end."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SECONDS_MAX = 180
TRIES = 50


def main() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
    server = subprocess.Popen(
        [ROOT / "scripts/serve"],
        env={**os.environ, "PORT": port},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        command = printed_curl_line(server)
        page = json.loads(answer_to(command))
        key = re.search(r"Bearer (\w+)", command)[1]  # type: ignore[index]
        ids = walk(page, key)
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.communicate()
    print(f"{command}\nFollowing next from there gave {len(ids)} payments.", file=sys.stderr)
    assert len(ids) == len(set(ids)) > page["count"]


def printed_curl_line(server: subprocess.Popen[str]) -> str:
    assert server.stderr is not None
    for line in server.stderr:
        print(line, end="", file=sys.stderr)
        if line.startswith("curl "):
            return line.strip()
    raise AssertionError("scripts/serve ended without a curl line")


def answer_to(command: str) -> str:
    """Run the line as a person pastes it, again while the server is still starting."""
    for _ in range(TRIES):
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)  # noqa: S602
        if done.returncode == 0:
            return done.stdout
        time.sleep(0.2)
    raise AssertionError(done.stderr)


def walk(page: Any, key: str) -> list[str]:
    ids = [payment["id"] for payment in page["_embedded"]["payments"]]
    while link := page["_links"].get("next"):
        request = urllib.request.Request(link["href"], headers={"Authorization": f"Bearer {key}"})  # noqa: S310
        with urllib.request.urlopen(request, timeout=SECONDS_MAX) as response:  # noqa: S310
            page = json.load(response)
        ids += [payment["id"] for payment in page["_embedded"]["payments"]]
    return ids


if __name__ == "__main__":
    main()
