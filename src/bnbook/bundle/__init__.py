"""The book on a machine without a network: a folder that runs there, and an archive that comes back."""
