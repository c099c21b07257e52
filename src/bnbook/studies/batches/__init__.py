"""What changes when the batch does: small networks at many batch sizes, and which statistics they answer by."""
