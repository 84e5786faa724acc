"""rpl for agents: measuring, explaining and optimizing as tools of the Model Context Protocol."""
