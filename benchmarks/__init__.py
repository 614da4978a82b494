"""How fast Holdfast is, always as a ratio to something else measured in the same run. Not part of the installed package."""
