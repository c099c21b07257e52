"""From chapter to site: chapters, runs, the gate, publishing, pages, the build."""

import sys

# jsonschema, with which nbformat looks at notebooks, would load a checker of international addresses that
# compiles its grammar at every start (1.2 s, more than all else together). No notebook has such an address.
sys.modules.setdefault("rfc3987_syntax", None)
