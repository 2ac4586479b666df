"""Records to what people read: live table, terminal, Markdown and HTML. Drawn from records alone."""
