"""Running chapters: kernels, processes side by side, and what watches them."""
