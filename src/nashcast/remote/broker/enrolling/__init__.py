"""Enrolment and invitations."""
