"""From chapter to site, a room a step, each on those before it: chapters, pictures, prose, gate, execution,
handout, explorers, pages."""

import sys

# jsonschema, with which nbformat looks at notebooks, would load a checker of international addresses that
# compiles its grammar at every start (1.2 s, more than all else together). No notebook has such an address.
sys.modules.setdefault("rfc3987_syntax", None)
