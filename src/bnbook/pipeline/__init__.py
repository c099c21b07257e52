"""From chapter to site: chapters, runs, the gate, publishing, pages, the build."""
