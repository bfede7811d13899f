"""Files: the registry of adapters, paths, atomic writes, workers, interrupts."""
