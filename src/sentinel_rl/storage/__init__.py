"""What is kept on disk: atomic files, run folders, checkpoints and archives. It knows arrays, not agents."""
