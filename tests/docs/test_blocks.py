"""The runner of examples can fail: each rule of it, on a page of a few lines."""

from __future__ import annotations

import pytest

from tests.docs.blocks import blocks, commands, occurs, run_python

PAGE = """
# Title

```python
import asyncio
base = 40
```

Text, and a block inside a list:

- item

  ```python
  await asyncio.sleep(0)
  answer = base + 2
  ```

<!-- skip: needs a second machine -->
```python
raise AssertionError
```

```text
not code
```
"""


def test_blocks_of_one_page_share_a_module() -> None:
    """Names of an earlier block are there, indentation of a list is taken off, `await` works at the top."""
    found = list(blocks(PAGE))
    assert [block.skipped for block in found] == [None, None, "needs a second machine"]
    assert run_python("page", [block for block in found if not block.skipped]).answer == 42


def test_a_failing_block_names_page_and_line() -> None:
    """The traceback points into the document."""
    (block,) = blocks("one\n\n```python\nfine = 1\n1 / 0\n```\n")
    with pytest.raises(ZeroDivisionError) as caught:
        run_python("README.md", [block])
    last = caught.traceback[-1]
    assert (str(last.path).rsplit("/", 1)[-1], last.lineno + 1) == ("README.md", 5)


def test_a_comment_without_reason_skips_nothing() -> None:
    """Only a reason leaves a block out."""
    (block,) = blocks("<!-- skip: -->\n```python\nx = 1\n```\n")
    assert block.skipped is None


def test_commands_carry_what_is_shown_below_them() -> None:
    """Other commands, and their output, are not ours to run; a line may be continued."""
    found = commands("$ make setup\ninstalled\n$ holdfast lab \\\n    list\nring/E3 ...\n\n$ holdfast --help\n")
    assert [(command.words, command.shown) for command in found] == [
        (["holdfast", "lab", "list"], ["ring/E3 ..."]),
        (["holdfast", "--help"], []),
    ]


@pytest.mark.parametrize(
    "line, there", [("seed 7", True), ("seed ... done", True), ("seed 8", False), ("done ... seed", False), ("a.c", False)]
)
def test_occurs(line: str, there: bool) -> None:
    """`...` is anything within one line; everything else is itself."""
    assert occurs(line, "abc\n  seed  7 well done\n") is there
