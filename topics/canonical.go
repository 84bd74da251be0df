package topics

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// isCanonical reports whether v is in canonical form already, as most contents are, and need not be formatted. It may
// return false for a canonical value. It may return true for bytes that are not JSON: they have no other form.
func isCanonical(v Raw) bool { return len(v) > 0 && canonicalLength(v, 0) == len(v) }

// checkedDepth is the depth to which isCanonical checks a value; deeper values are formatted.
const checkedDepth = 8

// canonicalLength returns the length of the value at the start of v, or 0 if the value is not known to be canonical.
func canonicalLength(v []byte, depth int) int {
	switch {
	case len(v) == 0 || depth > checkedDepth:
		return 0
	case v[0] == '"':
		return canonicalText(v)
	case v[0] == '{' || v[0] == '[':
		return canonicalList(v, depth)
	default:
		return canonicalWord(v)
	}
}

// canonicalList checks objects and arrays: no spacing, and member names in order.
func canonicalList(v []byte, depth int) int {
	closing := v[0] + 2 // the closing bracket of '{' and of '[', in ASCII
	if len(v) > 1 && v[1] == closing {
		return 2
	}
	var previous []byte
	for at := 1; at < len(v); {
		if v[0] == '{' {
			n := canonicalText(v[at:])
			if n == 0 || at+n == len(v) || v[at+n] != ':' {
				return 0
			}
			name := v[at+1 : at+n-1]
			if !isPlain(name) || previous != nil && bytes.Compare(previous, name) >= 0 {
				return 0
			}
			previous = name
			at += n + 1
		}
		n := canonicalLength(v[at:], depth+1)
		if n == 0 || at+n == len(v) {
			return 0
		}
		at += n + 1
		switch v[at-1] {
		case closing:
			return at
		case ',':
		default:
			return 0
		}
	}
	return 0
}

// isPlain reports whether a name can be compared by its bytes. The canonical order is by UTF-16 code units, which is the
// same only for ASCII names without escapes.
func isPlain(name []byte) bool {
	for _, c := range name {
		if c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// canonicalText checks strings: no control characters, and only the escapes that JSON requires.
func canonicalText(v []byte) int {
	if len(v) == 0 || v[0] != '"' {
		return 0
	}
	for i := 1; i < len(v); i++ {
		switch c := v[i]; {
		case c == '"':
			if !utf8.Valid(v[1:i]) {
				return 0
			}
			return i + 1
		case c < ' ':
			return 0
		case c == '\\':
			if i++; i == len(v) || strings.IndexByte(`"\bfnrt`, v[i]) < 0 {
				return 0
			}
		}
	}
	return 0
}

// canonicalWord checks null, booleans, and integers with so few digits that a double holds them exactly.
func canonicalWord(v []byte) int {
	n := bytes.IndexAny(v, ",]}")
	if n < 0 {
		n = len(v)
	}
	switch word := string(v[:n]); word {
	case "null", "true", "false", "0":
		return n
	default:
		digits := strings.TrimPrefix(word, "-")
		if len(digits) == 0 || len(digits) > 15 || digits[0] == '0' || strings.Trim(digits, "0123456789") != "" {
			return 0
		}
		return n
	}
}
