"""``python -m sentinel_rl.cli`` is ``sentinel``."""

from sentinel_rl.cli.app import main

main()
