"""Length and direction: what batch norm's reparametrisation does to least squares, half-spaces and a small
network."""
