"""The `greensched` command."""


def main() -> None:
    """Run the command line."""
    raise SystemExit("greensched: no verbs yet")


if __name__ == "__main__":
    main()
