"""A command for ``holdfast run``: writes the time into a file for as long as it lives.

``worker.py FILE [deaf] [wrap] [daemon] [bare] [for SECONDS] [exit CODE]``: deaf ignores SIGTERM; wrap works in a child, as behind a
shell; daemon in a grandchild that left the process group; bare clears the environment of that grandchild. Every line is a pid and a
reading of CLOCK_BOOTTIME; "term" is written when SIGTERM comes.
"""

import os
import signal
import sys
import time

INTERVAL = 0.005
LIFE_MAX = 100.0  # above every deadline of the tests; seconds: whatever goes wrong, nothing of a test stays

words = sys.argv[2:]
out = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
end_at = time.monotonic() + (float(words[words.index("for") + 1]) if "for" in words else LIFE_MAX)


def write(what: str) -> None:
    os.write(out, f"{what} {os.getpid()} {time.clock_gettime(time.CLOCK_BOOTTIME)!r}\n".encode())


def on_term(number: int, frame: object) -> None:
    write("term")
    if "deaf" not in words:
        os._exit(0)


signal.signal(signal.SIGTERM, on_term)
write("start")
if "wrap" in words or "daemon" in words:
    if os.fork() > 0:
        if "daemon" in words:
            time.sleep(float(words[words.index("daemon") + 1]))
            os._exit(5)
        os.wait()
        os._exit(0)
    if "daemon" in words:
        os.setsid()
        if os.fork() > 0:
            os._exit(0)
        if "bare" in words:
            os.execve(sys.executable, [sys.executable, "-S", "-E", __file__, sys.argv[1], *({"deaf"} & set(words))], {})
write("env " + " ".join(f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith("HOLDFAST_")))
while time.monotonic() < end_at:
    write("work")
    time.sleep(INTERVAL)
write("end")
os._exit(int(words[words.index("exit") + 1]) if "exit" in words else 0)
