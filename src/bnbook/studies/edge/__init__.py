"""What sets the smoothness, the network or the learning rate: small networks at the edge of stability."""
