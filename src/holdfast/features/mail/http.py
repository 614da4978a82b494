"""Mail over HTTP: its metric.  docs/http.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.agent.feature import HttpPart
from holdfast.agent.observe.metrics import Metric, labelled


class MailHttp(HttpPart):
    """No routes: clients send and listen at the local socket."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._counts = counts

    def metrics(self) -> Iterable[Metric]:
        counts = {name: float(count) for name, count in self._counts.items()}
        yield labelled("mail_total", "counter", "Messages to single members, by what became of them.", "what", counts)
