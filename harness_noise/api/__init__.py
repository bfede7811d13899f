"""The public functions: what `import harness_noise` gives, and what every command is a client of.

`runs` and `plan` have the functions on runs, `files` those that write; `keywords` has what they share.
"""
