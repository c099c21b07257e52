"""The notebook that a reader takes away, which runs by itself. `python -m bnbook.pipeline.handout DIR`."""
