"""MONAI's names, for a small network."""
