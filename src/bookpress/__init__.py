"""bookpress: a press for books whose sentences are measured. It runs chapters, judges their claims, decides what may
be published and makes the site; what it is a book about it is told (`bookpress.book`).

results, runs: what chapters record and train · claims: tests and verdicts · stamp: what makes evidence stale ·
pipeline: from chapter to site · site: its pages · coursework · cli.
"""

import sys

if "multiprocessing.spawn" in sys.modules:  # perhaps this is a worker of a chapter's pool
    from bookpress.cores import end_with_parent

    end_with_parent()
