"""Who we are to a registry: docker's configuration, its helpers, challenges and tokens."""
