"""The results: frozen rows, their JSON and its schema."""
