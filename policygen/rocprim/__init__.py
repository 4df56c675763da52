"""All that is AMD's: rocPRIM's configs, the compilers that know them, results of its tuners."""
