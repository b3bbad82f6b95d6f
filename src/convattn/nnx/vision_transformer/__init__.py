"""Vision transformers: layers of tokens mixed by attention, or by a convolution of their image."""

from convattn.extras import require

require("pydantic")
