// Package rowformat is how the capabilities keep the rows of their group tables: one Protobuf message a key, deterministic, with
// a version that builds which cannot keep a promise with it refuse, and the earliest deadline in a field of its own.
package rowformat

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Message is a row.
type Message interface {
	proto.Message
	GetVersion() uint32
}

// fieldDeadline is the number of the field that has a row's earliest deadline, in milliseconds, where rows have one.
const fieldDeadline = 2

// Format is that of one capability's rows.
type Format struct {
	Name    string // of the capability, for errors
	Version uint32 // that this build writes
	Newer   error  // is wrapped by the error about a row that a newer build wrote
}

// Encode writes a row; equal rows have equal bytes.
func (f Format) Encode(row Message) ([]byte, error) {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(row)
	if err != nil {
		return nil, fmt.Errorf("%s: encode row: %w", f.Name, err)
	}
	return raw, nil
}

// Decode reads a row into an empty one, and refuses one of a newer format.
func (f Format) Decode(raw []byte, row Message) error {
	if err := proto.Unmarshal(raw, row); err != nil {
		return fmt.Errorf("%s: decode row: %w", f.Name, err)
	}
	if v := row.GetVersion(); v > f.Version {
		return fmt.Errorf("%w: %d, this build reads up to %d", f.Newer, v, f.Version)
	}
	return nil
}

// Deadline reads the earliest deadline of an encoded row; ok is false where it has none, or is no row. It decodes nothing
// else: it is called for every row that is written or recovered.
func Deadline(raw []byte) (ms int64, ok bool) {
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
