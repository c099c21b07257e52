"""The mathematics on trial: theorems, why gradients grow, length and direction."""
