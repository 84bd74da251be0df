package topics

import "github.com/turntable-streams/turntable/codec"

const (
	// MaxDepth is how deep a record may nest: as deep as Java's parser takes it.
	MaxDepth = codec.MaxDepth
	// MaxValueDepth is how deep a record may nest whose values are carried inside other records (a tool's result stands
	// in a tool message, that in an enriched message, that in a think-response): what is accepted here must not become
	// unreadable there.
	MaxValueDepth = MaxDepth - 16
)
