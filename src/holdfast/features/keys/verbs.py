"""The verbs of keys: ``holdfast keys``."""

from holdfast.cli.verbs import Entry, Offer, Table

KEYS = Table(
    "Keys of the group: make one, and change it everywhere without a pause.",
    {
        "generate": Entry("features.keys.cli:generate", "Make a new key; with -o FILE into a file that only you can read."),
        "list": Entry("features.keys.cli:listing", "Which keys each member holds; the first is the one it writes with."),
        "install": Entry("features.keys.cli:install", "Step 1 of a rotation: every member can read with the key in this file."),
        "use": Entry("features.keys.cli:use", "Step 2: every member writes with the key of this id."),
        "remove": Entry("features.keys.cli:remove", "Step 3: every member forgets the key of this id."),
    },
)
OFFER = Offer({"keys": KEYS}, above="seats")
