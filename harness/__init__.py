"""qualify: a staged model-qualification harness for rerankers, with sealed evidence bundles."""

FORMAT = 1
"""Version of the ladder, plan and root formats this code reads and writes."""

VERSION = "0.4.0"
"""Version of qualify itself; a root states which one made it. Raised with every change of a default, a record or a metric."""
