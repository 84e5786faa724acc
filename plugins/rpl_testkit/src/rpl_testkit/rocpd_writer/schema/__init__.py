"""Tables and views of rocpd schema 3.0.0 to 3.0.5, as rocprofv3 creates them."""
