"""``python -m excise.pipeline.cli``: the same command line as ``excise``."""

from excise.pipeline.cli.main import main

main()
