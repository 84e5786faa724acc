"""The roofline: work and traffic of each kernel against the ceilings of the device."""
