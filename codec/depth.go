package codec

import "bytes"

// MaxDepth is how deep arrays and objects of a JSON value may be nested in one another: as deep as Jackson reads by
// default, so what we accept, the Java side accepts.
const MaxDepth = 1000

// CheckDepth returns ErrDepth if the first JSON value of raw is nested deeper than MaxDepth. It judges nothing else:
// for text that is no JSON its answer means nothing beyond that reading it cannot recurse deeper. It costs next to
// nothing for a value with up to MaxDepth arrays and objects.
func CheckDepth(raw []byte) error {
	if Deeper(raw, MaxDepth) {
		return ErrDepth
	}
	return nil
}

// Deeper reports whether the first JSON value of raw is nested deeper than limit, as CheckDepth judges it.
func Deeper(raw []byte, limit int) bool {
	// Counting brackets is many times faster than following strings, and settles nearly every record.
	if len(raw) <= limit || bytes.Count(raw, []byte{'{'})+bytes.Count(raw, []byte{'['}) <= limit {
		return false
	}
	raw = bytes.TrimLeft(raw, " \t\r\n")
	// What follows a number or a word is not ours to judge.
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
