"""An operator asks another agent to drain and leave."""
