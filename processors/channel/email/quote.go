package email

import (
	"regexp"
	"strings"
)

// introduction is the line with which mail programs introduce a quote, such as "On Monday, Ada wrote:".
var introduction = regexp.MustCompile(`(?i)(wrote|writes|schrieb.*|a écrit|escribió|ha scritto|schreef.*|skrev.*|@[^ ]+|>)\s*:$`)

const maxIntroduction = 200

// withoutQuote removes the quoted lines at the end of a reply and the line, or the two lines, that introduce them. It returns a
// text that is nothing but a quote unchanged.
func withoutQuote(s string) string {
	lines := trimBlank(strings.Split(s, "\n"))
	if len(lines) == 0 || !isQuoted(lines[len(lines)-1]) {
		return s
	}
	rest := lines
	for len(rest) > 0 && (isQuoted(rest[len(rest)-1]) || strings.TrimSpace(rest[len(rest)-1]) == "") {
		rest = rest[:len(rest)-1]
	}
	if n := len(rest); n > 0 && len(rest[n-1]) <= maxIntroduction && introduction.MatchString(strings.TrimSpace(rest[n-1])) {
		rest = rest[:n-1]
		// The introduction may be wrapped, and then begins after an empty line.
		if n >= 3 && isWrapped(rest[n-2]) && strings.TrimSpace(rest[n-3]) == "" {
			rest = rest[:n-2]
		}
	}
	if rest = trimBlank(rest); len(rest) == 0 {
		return s
	}
	return strings.Join(rest, "\n")
}

// isWrapped reports whether a line is the first of a wrapped introduction.
func isWrapped(line string) bool {
	for _, start := range []string{"On ", "Am ", "Le ", "El ", "Il ", "Op ", "Den "} {
		if strings.HasPrefix(line, start) && len(line) <= maxIntroduction && strings.ContainsAny(line, "0123456789") {
			return true
		}
	}
	return false
}

func isQuoted(line string) bool { return strings.HasPrefix(line, ">") }

func trimBlank(lines []string) []string {
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}
