"""Who leads what: fast failure detection by several monitors, terms promised by the seats."""

KIND = "lead"  # of grant: how clients ask for it
