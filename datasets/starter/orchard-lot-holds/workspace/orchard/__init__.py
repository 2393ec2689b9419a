"""Stock in lots, with a journal."""
