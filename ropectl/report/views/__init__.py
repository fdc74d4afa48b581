"""Views: one for each command, from its record to tables and sentences."""
