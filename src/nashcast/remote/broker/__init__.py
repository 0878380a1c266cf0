"""The broker, its rules, and enrolment."""
