"""What a client sends to workers: objects and include folders, by what is in them."""

from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from policygen.cache import digest
from policygen.search.cluster.archives import packed


@dataclass(slots=True)
class SentContents:
    """Files and folders of this machine, each looked at once."""

    names: dict[str, str] = field(default_factory=dict)
    """Path → its content's name."""
    files: dict[str, Path] = field(default_factory=dict)
    """Content's name → where it lies."""
    archives: dict[str, bytes] = field(default_factory=dict)
    guard: Lock = field(default_factory=Lock)

    def file(self, path: str) -> str:
        """The name of what is in a file."""
        with self.guard:
            if path not in self.names:
                name = digest(Path(path).read_bytes())
                self.names[path], self.files[name] = name, Path(path)
            return self.names[path]

    def folder(self, path: str) -> str:
        """The name of what is in a folder."""
        with self.guard:
            if path not in self.names:
                data = packed(Path(path))
                name = digest(data)
                self.names[path], self.archives[name] = name, data
            return self.names[path]

    def data(self, name: str) -> bytes:
        """What has a name."""
        if name in self.archives:
            return self.archives[name]
        return self.files[name].read_bytes()
