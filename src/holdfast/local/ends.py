"""How a hold ends: one text for each way.  docs/grants.md (how it ends).

The agent, the client by its own clock, and ``holdfast run`` speak of the same facts, and users compare what they say.
"""

from __future__ import annotations

LAPSED = "its deadline passed before it was renewed"
UNREAD = "its deadline passed before its client read that it was renewed"
UNTAKEN = "its first deadline passed before its client took it up: it was stopped, or its machine too busy"
DEPOSED = "another one has it now: its time was over before it was renewed"
RELEASED = "given back"
DIED = "the processes that held it have ended"
LEAVING = "the agent is leaving its group"
UNWANTED = "not wanted any more"
FORKED = "it belongs to the process that asked for it"
SILENT = "the agent ended its stream"

RELEASES = {"stopped": RELEASED, "dead": DIED, "deadline": LAPSED, "untold": UNWANTED}  # why the agent released it
