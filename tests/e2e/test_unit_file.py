"""The systemd unit, run as systemd would run it: its command, its credentials, its notifications, its signals."""

from __future__ import annotations

import re
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path

from holdfast.wire.keys import generate
from tests.e2e.looking_on import typed
from tests.support.agents import clean_environ, until

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
UNIT = (DEPLOY / "holdfast-agent.service").read_text()


def setting(name: str) -> str:
    (found,) = re.findall(rf"^{name}=(.*)$", UNIT, re.MULTILINE)
    return str(found)


class Systemd:
    """As much of it as the unit asks for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.words: list[str] = []
        self._notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._notified.bind(str(folder / "notify"))
        self._notified.setblocking(False)

    def start(self) -> subprocess.Popen[bytes]:
        settings = (DEPLOY / "holdfast.toml").read_text().replace("10.0.0.5:7946", "127.0.0.1:0", 1)
        (self.folder / "holdfast.toml").write_text(re.sub(r"^seeds = .*$", "", settings, flags=re.MULTILINE))
        credentials = self.folder / "credentials"
        credentials.mkdir()
        (credentials / "key").write_text(generate())
        (credentials / "key").chmod(0o400)
        name, _, value = setting("Environment").partition("=")
        directories = {"STATE_DIRECTORY": str(self.folder / "state"), "RUNTIME_DIRECTORY": str(self.folder)}
        environ = {**directories, name: value.replace("%d", str(credentials)), "NOTIFY_SOCKET": str(self.folder / "notify")}
        watchdog = {"WATCHDOG_USEC": str(int(setting("WatchdogSec")) * 1_000_000)}
        command = setting("ExecStart").replace("/etc/holdfast/holdfast.toml", str(self.folder / "holdfast.toml"))
        for variable, path in directories.items():
            command = command.replace(f"${{{variable}}}", path)
        environ["PATH"] = str(Path(sys.executable).parent)
        with (self.folder / "log").open("wb") as log:
            return subprocess.Popen(shlex.split(command), env=clean_environ(self.folder, {**environ, **watchdog}), stdout=log, stderr=log)

    def heard(self, word: str) -> bool:
        while True:
            try:
                self.words += self._notified.recv(4096).decode().splitlines()
            except BlockingIOError:
                return word in self.words

    def close(self) -> None:
        self._notified.close()


def test_the_unit_starts_reloads_and_stops_an_agent(tmp_path: Path) -> None:
    """docs/deployment.md: ready when the socket answers, alive by the watchdog, reloaded by SIGHUP, drained by SIGTERM with exit code 0;
    clients of the group may use the socket."""
    systemd = Systemd(tmp_path)
    process = systemd.start()
    try:
        until(lambda: systemd.heard("READY=1") or process.poll() is not None, "it is ready")
        assert process.poll() is None, (tmp_path / "log").read_text()
        until(lambda: systemd.heard("WATCHDOG=1"), "it says that it lives")
        assert (tmp_path / "agent.sock").stat().st_mode & 0o777 == int(setting("ExecStart").rpartition(" ")[2], 8)
        assert typed("info", "--json", "--agent", str(tmp_path / "agent.sock")).json["pid"] == process.pid
        (tmp_path / "holdfast.toml").write_text((tmp_path / "holdfast.toml").read_text().replace("eu-1", "eu-2"))
        process.send_signal(signal.SIGHUP)
        until(lambda: systemd.heard("RELOADING=1"), "it reloads")
        tags = ("tags", "show", "--json", "--agent", str(tmp_path / "agent.sock"))
        until(lambda: "eu-2" in typed(*tags).out, "the new tags are there")
        process.terminate()
        until(lambda: systemd.heard("STOPPING=1"), "it says that it stops")
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        systemd.close()
