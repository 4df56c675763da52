"""The dialect of policy selectors: functions that return a policy under conditions."""
