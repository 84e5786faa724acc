"""The build of a whole project: in a copy of its tree, by the user's command or by what is found there."""
