"""`python -m excise` is the command `excise`."""

from excise.pipeline.cli.main import main

if __name__ == "__main__":
    main()
