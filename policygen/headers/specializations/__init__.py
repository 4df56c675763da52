"""The dialect of `smNN_*_tuning` struct templates, which a policy chain reads."""
