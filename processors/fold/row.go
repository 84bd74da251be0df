package fold

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// rowVersion is the format of the rows this build writes. It grows when an older build could not keep a promise with a
// newer row; a field more is no reason, for unknown fields survive.
const rowVersion = 1

// ErrRowVersion is wrapped by the error about a row that a newer build wrote.
var ErrRowVersion = errors.New("fold: row has a newer format")

// fieldDeadline is the number of Row.deadline_ms.
const fieldDeadline = 2

// EncodeRow writes a row.
func EncodeRow(s *Row) ([]byte, error) {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("fold: encode row: %w", err)
	}
	return raw, nil
}

// DecodeRow reads a row. It refuses one of a newer format.
func DecodeRow(raw []byte) (*Row, error) {
	s := &Row{}
	if err := proto.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("fold: decode row: %w", err)
	}
	if s.Version > rowVersion {
		return nil, fmt.Errorf("%w: %d, this build reads up to %d", ErrRowVersion, s.Version, rowVersion)
	}
	return s, nil
}

// deadlineOf reads the earliest deadline of an encoded row; ok is false where it has none, or is no row.
func deadlineOf(raw []byte) (ms int64, ok bool) {
	for len(raw) > 0 {
		field, kind, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return 0, false
		}
		raw = raw[n:]
		if field == fieldDeadline && kind == protowire.VarintType {
			v, n := protowire.ConsumeVarint(raw)
			return int64(v), n >= 0 && v != 0
		}
		if n = protowire.ConsumeFieldValue(field, kind, raw); n < 0 {
			return 0, false
		}
		raw = raw[n:]
	}
	return 0, false
}
