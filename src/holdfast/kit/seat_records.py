"""What a seat writes to disk: the parts of its journal, and the keys in them.  Spec: foundation 3 (Storage), 4 (Seats), F13.

The machines of the kit import these names and save under no others. A machine of a feature opens a part of its own, and declares its
name as ``PART`` in the file that opens it: below ``features``, look for ``storage.part(PART)``. docs/storage.md lists all of them with
the files of the state directory (``disk/state_directory.py``); a seat that is the only one of its machine also keeps a number beside
the lock of the group (``disk/horizon.py``).

The next release reads these journals: names and records stay as they are (``tests/pins``).
"""

SEATS = "seats"  # the part of ``kit.seats`` and ``kit.marks``
ME = "me"  # whose journal this is: machine, slot, the life that began it, and whether it ever served
MET = "met/"  # and a slot: the journal that this slot showed first, so that a slot that lost its disk is told apart from a new one
MARK = "mark"  # the own mark: how far this journal got, by which an old copy of it is found out
MARKER = "marker"  # the secret of which the own marks are made, so that no peer can invent one
MARK_OF = "mark/"  # and a slot: the last mark that this slot showed

KEEPER = "keeper"  # the part of ``kit.keeper``
LONGEST = "longest"  # the longest hold that this seat may have promised, in seconds: so long it waits after a restart
ERA = "era"  # grows with a rebuild of the seat, which is not offered yet: no release writes it
