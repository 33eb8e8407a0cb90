"""A parser for the instructions that deploy/Dockerfile uses."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

CONTINUED = re.compile(r"\\\n\s*")


@dataclass
class Stage:
    """A build stage, which starts with FROM."""

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
        """Return the variables that ENV sets, and the defaults of ARG."""
        words = " ".join(self.all("ARG") + self.all("ENV")).split()
        return dict(word.split("=", 1) for word in words)

    @property
    def command(self) -> list[str]:
        return words(self.only("CMD"))

    @property
    def health_check(self) -> list[str]:
        return words(self.only("HEALTHCHECK").partition("CMD ")[2])


def words(text: str) -> list[str]:
    """Return a command in exec form, a JSON array. It runs without a shell, so that it gets signals."""
    command: list[str] = json.loads(text)
    return command


def stages(path: Path) -> list[Stage]:
    result: list[Stage] = []
    text = re.sub(r"^#.*\n", "", path.read_text(), flags=re.MULTILINE)
    for line in filter(None, CONTINUED.sub(" ", text).splitlines()):
        keyword, _, rest = line.partition(" ")
        if keyword == "FROM":
            base, _, name = rest.partition(" AS ")
            result.append(Stage(base, name))
        else:
            result[-1].instructions.append((keyword, rest))
    return result
