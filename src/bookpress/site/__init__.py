"""The site: pages from what the pipeline has passed, their tokens filled in, rendered, mended and put in place.

Everything is plain HTML made when the site is built; scripts only make it handier.
"""
