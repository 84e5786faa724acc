"""Build a candidate the way that users build their own: one file, or a copy of the whole project's tree.

Builds happen in scratch directories only.
"""
