"""Published results, run again by their own protocol: the paper's figure beside ours."""
