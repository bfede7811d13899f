"""Builders and fakes that several tests share; pytest finds them by `pythonpath`, a program by PYTHONPATH=tests."""
