package peerhttp

import (
	"strconv"
	"strings"
	"time"
)

// maxWait is the longest wait of a request that is answered before its task has ended.
const maxWait = time.Minute

// preference is what a request prefers (RFC 7240).
type preference struct {
	async bool          // respond-async: 202 if the task takes longer than wait
	wait  time.Duration // at most maxWait
}

// preferenceOf reads the values of the header Prefer. Of a preference that is repeated the first one counts; unknown ones, and
// a wait that is not a number of seconds, are ignored.
func preferenceOf(values []string) (p preference) {
	seen := map[string]bool{}
	for _, value := range values {
		for rest := value; rest != ""; {
			var item string
			item, rest = cutUnquoted(rest, ',')
			item, _ = cutUnquoted(item, ';') // without the parameters
			name, word, _ := strings.Cut(item, "=")
			name, word = strings.ToLower(strings.Trim(name, " \t")), unquoted(strings.Trim(word, " \t"))
			if seen[name] {
				continue
			}
			switch name {
			case "respond-async":
				seen[name], p.async = true, word == ""
			case "wait":
				seen[name] = true
				p.wait = seconds(word)
			}
		}
	}
	return p
}

// seconds reads a number of seconds; 0 if it is none.
func seconds(word string) time.Duration {
	if strings.Trim(word, "0123456789") != "" {
		return 0
	}
	n, err := strconv.ParseUint(word, 10, 64)
	if err != nil {
		if word == "" {
			return 0
		}
		return maxWait // more than 64 bits
	}
	return time.Duration(min(n, uint64(maxWait/time.Second))) * time.Second
}

// cutUnquoted cuts a text at the first separator outside of a quoted string.
func cutUnquoted(text string, separator byte) (before, after string) {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == separator && !quoted:
			return text[:i], text[i+1:]
		}
	}
	return text, ""
}

// unquoted returns the content of a quoted string, or the text if it is none.
func unquoted(text string) string {
	if len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' {
		return text
	}
	var b strings.Builder
	for i := 1; i < len(text)-1; i++ {
		if text[i] == '\\' && i+1 < len(text)-1 {
			i++
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// waitOf reads the parameter wait of a request, as 25s or as 25; without it, there is no wait.
func waitOf(text string) (time.Duration, bool) {
	if text == "" {
		return 0, true
	}
	if strings.Trim(text, "0123456789") == "" {
		return seconds(text), true
	}
	d, err := time.ParseDuration(text)
	return min(d, maxWait), err == nil && d >= 0
}
