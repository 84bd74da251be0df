package turn

import (
	"bytes"

	"github.com/turntable-streams/turntable/topics"
)

// messages counts the elements of a JSON array that are not null. The array must be valid JSON, which codecs guarantee,
// so only brackets, commas and quotes are examined. This is fast because a history is counted at every response.
func messages(array topics.Raw) uint32 {
	count, depth := uint32(0), 0
	element := byte(0) // first byte of the current element; 0 before its first byte
	end := func() {
		if element != 0 && element != 'n' {
			count++
		}
		element = 0
	}
	for i := 0; i < len(array); i++ {
		b := array[i]
		if depth == 1 && element == 0 && b > ' ' && b != ',' && b != ']' {
			element = b
		}
		switch b {
		case '"':
			i += quote(array[i+1:])
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				end()
			}
		case ',':
			if depth == 1 {
				end()
			}
		}
	}
	return count
}

// quote returns the length of a text up to and including its closing quote.
func quote(text []byte) int {
	for at := 0; ; {
		n := bytes.IndexByte(text[at:], '"')
		if n < 0 {
			return len(text)
		}
		at += n + 1
		escapes := 0
		for at-2-escapes >= 0 && text[at-2-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return at
		}
	}
}
