"""The public functions of `import harness_noise`, which every command calls.

`runs` has the functions on runs, `files` those that write; `keywords` has what they share.
"""
