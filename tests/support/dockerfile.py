"""A Dockerfile, read as Docker reads it, as far as ours goes: no flags but `--from` and a health check's."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

CONTINUED = re.compile(r"\\\n\s*")


@dataclass
class Stage:
    """What begins with FROM."""

    base: str
    name: str
    instructions: list[tuple[str, str]] = field(default_factory=list)  # such as ("RUN", "scripts/install $EXTRA")

    def all(self, keyword: str) -> list[str]:
        return [text for word, text in self.instructions if word == keyword]

    def only(self, keyword: str) -> str:
        (text,) = self.all(keyword)
        return text

    @property
    def variables(self) -> dict[str, str]:
        """Return what ENV sets, and ARG where nobody gives another."""
        words = " ".join(self.all("ARG") + self.all("ENV")).split()
        return dict(word.split("=", 1) for word in words)

    @property
    def command(self) -> list[str]:
        return words(self.only("CMD"))

    @property
    def health_check(self) -> list[str]:
        return words(self.only("HEALTHCHECK").partition("CMD ")[2])


def words(text: str) -> list[str]:
    """Read a command in its exec form, a JSON array: no shell stands between it and signals."""
    read: list[str] = json.loads(text)
    return read


def stages(path: Path) -> list[Stage]:
    found: list[Stage] = []
    text = re.sub(r"^#.*\n", "", path.read_text(), flags=re.MULTILINE)
    for line in filter(None, CONTINUED.sub(" ", text).splitlines()):
        keyword, _, rest = line.partition(" ")
        if keyword == "FROM":
            base, _, name = rest.partition(" AS ")
            found.append(Stage(base, name))
        else:
            found[-1].instructions.append((keyword, rest))
    return found
