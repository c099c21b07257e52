"""One notebook executed by papermill, in a kernel that is started again where it did not come up."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

from bnbook.errors import BnbookError

#: What marks a chapter's own BnbookError among the failures of its cells.
MENDABLE = "bad input: "
#: Attempts at starting a kernel: two that start at once may have picked the same free port.
STARTS = 3
#: Seconds within which a kernel must answer: on a machine busy with other things a minute is too short.
ANSWERS_WITHIN = 180


def execute_notebook(source: Path, destination: Path, values: dict[str, Any]) -> str | None:
    """Execute; the first line of what went wrong, or None."""
    import papermill
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    _reach_own_machine()
    for start in range(1, STARTS + 1):
        try:
            papermill.execute_notebook(
                source,
                destination,
                parameters=values,
                kernel_name="python3",
                progress_bar=False,
                start_timeout=ANSWERS_WITHIN,
                cwd=source.parent,
                extra_arguments=[
                    "--log-level=CRITICAL"
                ],  # the kernel's own remarks do not belong in the terminal
            )
        except papermill.PapermillExecutionError as error:
            mendable = error.ename == BnbookError.__name__
            return (
                f"{MENDABLE}{error.evalue}"
                if mendable
                else f"cell {error.exec_count}: {error.ename}: {error.evalue}"
            )
        except (DeadKernelError, CellTimeoutError) as error:
            return f"the kernel died: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
        except RuntimeError as error:
            if "before replying" not in str(error) and "didn't respond" not in str(error):
                raise
            if start == STARTS:
                return f"the kernel did not start in {STARTS} attempts: {error}"
        else:
            return None
    raise AssertionError("a kernel starts at least once")


def _reach_own_machine() -> None:
    """Raises BnbookError where processes cannot speak to each other by 127.0.0.1, as a kernel must."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname(), timeout=5).close()
    except OSError as error:
        raise BnbookError(
            f"a notebook's kernel is reached by 127.0.0.1, which does not answer here ({error}): bring the "
            "loopback device up (ip link set lo up)"
        ) from None
