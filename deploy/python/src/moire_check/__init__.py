"""Checks the synchronisation of GPU kernels: races, hangs, broken protocols.

    from moire_check import check
    result = check(compiled, grid=(2,))      # a Triton or CuTe kernel, a path, or the text of a PTX module
    assert result.ok, result.text

The work is done by the command ``moire``, which the wheel brings along; ``MOIRE`` names another one.
"""

from ._check import Finding, Launch, MoireError, Place, Result, check

__all__ = ["Finding", "Launch", "MoireError", "Place", "Result", "check"]
