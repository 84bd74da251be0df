package kafkatest

import (
	"slices"
	"strings"
)

// lastLines returns the last lines of a program's output for an error text. It omits the stack frames of Java, so that the
// line with the exception is included.
func lastLines(out []byte, n int) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "\tat ") })
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
