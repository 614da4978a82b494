"""Who leads what: fast failure detection by several monitors, terms promised by the seats."""
