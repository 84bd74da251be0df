package codec

import "bytes"

// MaxDepth is the largest nesting depth of arrays and objects in a JSON value. It is Jackson's default, so Java services
// accept every value that is accepted here.
const MaxDepth = 1000

// CheckDepth returns ErrDepth if the first JSON value of raw is nested deeper than MaxDepth. It does not validate raw: for
// text that is not JSON, a nil error means only that reading it cannot recurse deeper. A value with at most MaxDepth
// brackets is not parsed, only searched for them.
func CheckDepth(raw []byte) error {
	if Deeper(raw, MaxDepth) {
		return ErrDepth
	}
	return nil
}

// Deeper reports whether the first JSON value of raw is nested deeper than limit. See CheckDepth for text that is not
// JSON.
func Deeper(raw []byte, limit int) bool {
	// Counting brackets is many times faster than parsing strings, and is enough for nearly every record.
	if len(raw) <= limit || bytes.Count(raw, []byte{'{'})+bytes.Count(raw, []byte{'['}) <= limit {
		return false
	}
	raw = bytes.TrimLeft(raw, " \t\r\n")
	// A number or a word has no depth; the text after the first value is not checked.
	if len(raw) == 0 || raw[0] != '{' && raw[0] != '[' {
		return false
	}
	depth := 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = closingQuote(raw, i)
		case '{', '[':
			if depth++; depth > limit {
				return true
			}
		case '}', ']':
			if depth--; depth == 0 {
				return false
			}
		}
	}
	return false
}

// closingQuote returns the index of the quote that closes the string opened at raw[open], or len(raw).
func closingQuote(raw []byte, open int) int {
	for from := open + 1; ; {
		n := bytes.IndexByte(raw[from:], '"')
		if n < 0 {
			return len(raw)
		}
		quote := from + n
		escapes := 0
		for quote-escapes-1 >= from && raw[quote-escapes-1] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return quote
		}
		from = quote + 1
	}
}
