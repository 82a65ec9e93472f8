"""What pytest leaves alone here: settings and scripts that belong to the site (`make docs`)."""

collect_ignore = ["conf.py", "_site", "gallery"]
