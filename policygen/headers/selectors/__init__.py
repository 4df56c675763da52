"""Policy selectors: functions that return a policy under conditions."""
