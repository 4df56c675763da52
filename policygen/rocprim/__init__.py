"""Support for AMD: rocPRIM's configs, the compilers for them, and the results of its tuners."""
