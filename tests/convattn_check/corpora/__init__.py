"""The two corpora: certificates that every checker must refuse, and ones that it must accept."""
