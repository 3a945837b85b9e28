-- Reserved for the migration before the next one.
SELECT 1;
