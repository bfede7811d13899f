"""All that adapters hand over: runs with their scores, questions and clusters."""
