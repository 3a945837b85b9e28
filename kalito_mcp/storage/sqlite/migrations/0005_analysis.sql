-- Which analysis (text/analysis.py) the terms of records_text are of. Where it is an older one, opening the database
-- for writing builds the index anew.
ALTER TABLE identity ADD COLUMN analysis INTEGER NOT NULL DEFAULT 1;
