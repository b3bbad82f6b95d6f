"""``python -m convattn_check FILE...``."""

from convattn_check.command import main

raise SystemExit(main())
