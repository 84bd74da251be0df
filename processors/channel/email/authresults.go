package email

import "strings"

// dmarcPassed reports whether the first of the values of Authentication-Results that a server wrote says dmarc=pass for the domain
// of the header From (RFC 8601, section 2.2; RFC 7489, section 11.1). The first is the one that was added last. Anything that is
// unclear counts as failed: another result of DMARC in it, another domain, a syntax that is not that of the RFC.
func dmarcPassed(values []string, server, domain string) bool {
	for _, value := range values {
		parts, ok := splitResults(value)
		if !ok {
			return false // it may be the server's own
		}
		if len(parts[0]) == 0 || !strings.EqualFold(parts[0][0], server) {
			continue
		}
		return passed(parts[1:], domain)
	}
	return false
}

func passed(results [][]string, domain string) bool {
	found := false
	for _, words := range results {
		if len(words) == 0 || !strings.HasPrefix(strings.ToLower(words[0]), "dmarc") {
			continue
		}
		method, result, _ := strings.Cut(strings.ToLower(words[0]), "=")
		if method != "dmarc" && method != "dmarc/1" {
			continue
		}
		if found || result != "pass" {
			return false
		}
		from := ""
		for _, word := range words[1:] {
			if name, value, _ := strings.Cut(word, "="); strings.EqualFold(name, "header.from") {
				if from != "" {
					return false
				}
				from = value
			}
		}
		// Some servers report the organizational domain; only the exact one is accepted.
		if !strings.EqualFold(from, domain) {
			return false
		}
		found = true
	}
	return found
}

// splitResults splits a value at semicolons and each part into words. It removes comments and the marks of quoted strings, whose
// contents cannot end a word or a part. ok is false if a comment or a string does not end.
func splitResults(value string) (parts [][]string, ok bool) {
	var words []string
	var word strings.Builder
	inWord, quoted, depth := false, false, 0
	endWord := func() {
		if inWord {
			words = append(words, word.String())
			word.Reset()
			inWord = false
		}
	}
	for i := 0; i < len(value); i++ {
		c := value[i]
		if c == '\\' && (quoted || depth > 0) {
			if i++; i == len(value) {
				return nil, false
			}
			if quoted {
				word.WriteByte(value[i])
			}
			continue
		}
		switch {
		case quoted && c == '"':
			quoted = false
		case quoted:
			word.WriteByte(c)
		case c == '(':
			depth++
			endWord()
		case depth > 0:
			if c == ')' {
				depth--
			}
		case c == ')':
			return nil, false
		case c == '"':
			quoted, inWord = true, true
		case c == ';':
			endWord()
			parts, words = append(parts, words), nil
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			endWord()
		default:
			inWord = true
			word.WriteByte(c)
		}
	}
	if quoted || depth > 0 {
		return nil, false
	}
	endWord()
	return append(parts, words), true
}
