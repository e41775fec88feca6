"""Rules that choose how long an empty node stays awake."""
