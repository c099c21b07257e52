"""What the instruments and the training cost, measured against the bare thing in the same process."""
