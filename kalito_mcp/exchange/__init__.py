"""Takes memories in and out, one format a file: archives, pages, and the files of other programs."""
