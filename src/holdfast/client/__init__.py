"""The Python client of an agent: ``aio`` and ``blocking`` are one API in two spellings; nothing here is imported before it is used."""
