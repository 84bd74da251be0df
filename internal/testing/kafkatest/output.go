package kafkatest

import (
	"slices"
	"strings"
)

// lastLines are the last lines of what a program printed, for an error: the calls of a Java stack trace, which fill
// many lines after the one that says what happened, are left out.
func lastLines(out []byte, n int) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "\tat ") })
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
