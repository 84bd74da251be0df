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
	depth, quoted := 0, false
	for i := 0; i < len(value); i++ {
		switch b := value[i]; {
		case quoted && b == '\\':
			i++
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '{', b == '[':
			if depth++; depth > limit {
				return true
			}
		case b == '}', b == ']':
			depth--
		}
	}
	return false
}
