"""The store on PostgreSQL, for more people and machines than one file serves."""
