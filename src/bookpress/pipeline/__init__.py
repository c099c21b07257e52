"""From chapter to published run, a module a step, each on those before it: chapters, chapter_runs, locking, inks, phones,
pictures, prose, compare, gate, publishing, execution, handout, ledger, explorers, doctor. The
pages that show it are `bookpress.site`."""

import sys

# jsonschema, with which nbformat looks at notebooks, would load a checker of international addresses that
# compiles its grammar at every start (1.2 s, more than all else together). No notebook has such an address.
sys.modules.setdefault("rfc3987_syntax", None)
