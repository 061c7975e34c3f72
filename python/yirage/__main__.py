"""``python -m yirage`` is the ``yirage`` command."""

from .command import main

main()
