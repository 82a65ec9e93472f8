"""The paper's studies, each a folder: ``python -m studies all`` rewrites what they found."""
