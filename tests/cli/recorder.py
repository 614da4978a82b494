"""The outside recorder of ``holdfast run``: what ``worker.py`` wrote, and who is still alive."""

from __future__ import annotations

from pathlib import Path

WORKER = Path(__file__).with_name("worker.py")


class Record:
    """What the command wrote."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self) -> list[list[str]]:
        text = self.path.read_text() if self.path.exists() else ""
        return [line.split() for line in text.splitlines()]

    def times(self, what: str) -> list[float]:
        return [float(line[-1]) for line in self.lines() if line[0] == what]

    def pids(self) -> set[int]:
        return {int(line[-2]) for line in self.lines()}

    def working(self) -> bool:
        return bool(self.times("work"))


def alive(pids: set[int]) -> set[int]:
    """Those that can still act; who was killed and not waited for cannot."""

    def acts(pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        except FileNotFoundError:
            return False

    return {pid for pid in pids if acts(pid)}
