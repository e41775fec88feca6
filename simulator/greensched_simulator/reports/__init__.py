"""Reports: pages that need no network, and the same plots for papers."""
