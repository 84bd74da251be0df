package topics

import "github.com/turntable-streams/turntable/codec"

const (
	// MaxDepth is the largest nesting depth of arrays and objects in a record, the same as in Java's parser.
	MaxDepth = codec.MaxDepth
	// MaxValueDepth is the limit for records whose values are embedded in other records: a tool result is embedded in a
	// tool message, that in an enriched message, and that in a think-response. It is lower than MaxDepth so that the outer
	// records stay readable.
	MaxValueDepth = MaxDepth - 16
)
