package topics

import (
	"bytes"

	"github.com/turntable-streams/turntable/codec"
)

const (
	// MaxDepth is how deep a record may nest: as deep as Java's parser takes it.
	MaxDepth = codec.MaxDepth
	// MaxValueDepth is how deep a record may nest whose values are carried inside other records (a tool's result stands
	// in a tool message, that in an enriched message, that in a think-response): what is accepted here must not become
	// unreadable there.
	MaxValueDepth = MaxDepth - 16
)

// deeper reports whether a JSON value nests deeper than limit. The value may be malformed.
func deeper(value []byte, limit int) bool {
	// Counting brackets is many times faster than following strings, and settles nearly every record.
	if bytes.Count(value, []byte{'{'})+bytes.Count(value, []byte{'['}) <= limit {
		return false
	}
	depth := 0
	for i := 0; i < len(value); i++ {
		switch value[i] {
		case '"':
			i = closing(value, i)
		case '{', '[':
			if depth++; depth > limit {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return false
}

// closing is the index of the quote that closes the string opened at open, or the value's length.
func closing(value []byte, open int) int {
	for at := open + 1; ; {
		i := bytes.IndexByte(value[at:], '"')
		if i < 0 {
			return len(value)
		}
		body := value[at : at+i]
		at += i + 1
		if escapes := len(body) - len(bytes.TrimRight(body, "\\")); escapes%2 == 0 {
			return at - 1
		}
	}
}
