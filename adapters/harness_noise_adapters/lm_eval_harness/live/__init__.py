"""Inside a running lm-eval: its hook, further answers, injection, flags."""
