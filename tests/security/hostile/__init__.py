"""Hostile files and places: each is refused in a paragraph, or read, under limits of time and memory."""
