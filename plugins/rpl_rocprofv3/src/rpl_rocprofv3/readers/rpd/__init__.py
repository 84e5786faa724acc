"""RPD databases of rocmProfileData (schema 2)."""
