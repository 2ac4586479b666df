"""The evidence bundle, alone: seal a folder once, verify it without trusting whoever sealed it.

Imports the standard library and blake3 only. The format is `FORMAT.md`, beside this file.
"""
