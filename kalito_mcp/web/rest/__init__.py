"""REST: the specification's endpoints, and what a page that shows the memory reads and does. All of it is one table."""
