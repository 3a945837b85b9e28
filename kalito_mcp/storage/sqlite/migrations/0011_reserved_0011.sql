-- Reserved for another change.
SELECT 1;
