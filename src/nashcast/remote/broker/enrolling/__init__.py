"""Who may take part: enrolment and invitations."""
