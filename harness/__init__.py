"""qualify: a staged model-qualification harness for rerankers, with sealed evidence bundles."""

FORMAT = 1
"""Version of the ladder, plan and root formats this code reads and writes."""
