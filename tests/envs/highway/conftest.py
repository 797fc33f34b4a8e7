"""What is not collected: `faster` needs highway-env."""

collect_ignore = ["faster.py"]
