"""From a sixteenth of VGG-A's width to the whole, and from 2,000 steps to the paper's 15,000.

rungs: what is trained · curves: single numbers of one arm · pairs: of two arms, at equal steps or loss.
"""
