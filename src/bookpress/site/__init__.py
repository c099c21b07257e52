"""What the site adds to the pages: chips, the board, a page for each claim, the front page's pictures.

Everything is plain HTML made when the site is built; scripts only make it handier.
"""
