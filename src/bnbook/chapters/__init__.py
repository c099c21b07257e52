"""What each chapter trains and counts."""
