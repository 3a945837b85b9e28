-- The two roles of a memory on PostgreSQL, in the database that the administrator is connected to. For psql, with the
-- passwords in OWNER_PASSWORD and APP_PASSWORD.
\set ON_ERROR_STOP on
\getenv owner OWNER_PASSWORD
\getenv app APP_PASSWORD
CREATE ROLE kalito_owner LOGIN PASSWORD :'owner';
CREATE ROLE kalito_app LOGIN PASSWORD :'app';
ALTER DATABASE :"DBNAME" OWNER TO kalito_owner;
CREATE EXTENSION vector;
