"""Files into code objects: ELF, offload bundles, metadata, kernel descriptors, debug information."""
