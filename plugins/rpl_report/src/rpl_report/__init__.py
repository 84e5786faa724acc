"""What people look at: text, HTML, timeline, exports and explanations."""
