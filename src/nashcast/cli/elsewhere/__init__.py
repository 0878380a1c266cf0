"""Commands for agents elsewhere: hub, agents, broker, certificates, enrolment."""
