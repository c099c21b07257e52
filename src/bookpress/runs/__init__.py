"""One runner for every training: what the store has is read, the rest is trained, here or on a cluster.

kinds: which arm trains with what, by which code, and one stack as a worker trains it · runner: many arms, many
seeds · checkpoints: a training carried to its end by way of them · store: what is finished ·
pool: processes of this machine, or those of a Dask scheduler · progress: one line for the terminal.
"""
