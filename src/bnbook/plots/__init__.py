"""The figures of the chapters, a module each: functions that take arrays and return a figure."""
