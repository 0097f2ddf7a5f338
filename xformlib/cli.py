"""The command line: ``python -m xformlib COMMAND``. Each command is a function of its parsed options."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the exit status."""
    options = _parser().parse_args(argv)
    run: Callable[[argparse.Namespace], int] = options.run
    return run(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m xformlib", description="Tools for looking at xformlib.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_ops(commands)
    return parser


def _add_ops(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("ops", help="the operations and their rules, as a table")
    parser.add_argument("name", nargs="*", help="only ops whose name contains one of these")
    parser.add_argument(
        "--missing", action="store_true", help="only ops that lack something; exit status 1 if any does"
    )
    parser.add_argument("--full", action="store_true", help="do not cut long texts")
    parser.set_defaults(run=_ops)


def _ops(options: argparse.Namespace) -> int:
    from xformlib.coverage import coverage, table

    rows = [r for r in coverage() if not options.name or any(n in r.op.name for n in options.name)]
    if options.missing:
        rows = [r for r in rows if r.missing]
    print(table(rows, width=1000 if options.full else 40))
    return 1 if options.missing and rows else 0
