"""Thread traces for people and for other programs: listings, source views, differences, exports."""
