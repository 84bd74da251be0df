package rows

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Message is the Protobuf message of a row.
type Message interface {
	proto.Message
	GetVersion() uint32
}

// fieldDeadline is the number of the field with the earliest deadline of a row, in Unix milliseconds. It is optional.
const fieldDeadline = 2

// Format is the row format of one capability.
type Format struct {
	Name    string // name of the capability, for errors
	Version uint32 // highest version that this build reads
	Newer   error  // wrapped by the error about a row with a higher version
}

// Encode encodes a row. Equal rows have equal bytes.
func (f Format) Encode(row Message) ([]byte, error) {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(row)
	if err != nil {
		return nil, fmt.Errorf("%s: encode row: %w", f.Name, err)
	}
	return raw, nil
}

// Decode decodes raw into row, which must be empty. It rejects a row with a version higher than f.Version.
func (f Format) Decode(raw []byte, row Message) error {
	if err := proto.Unmarshal(raw, row); err != nil {
		return fmt.Errorf("%s: decode row: %w", f.Name, err)
	}
	if v := row.GetVersion(); v > f.Version {
		return fmt.Errorf("%w: %d, this build reads up to %d", f.Newer, v, f.Version)
	}
	return nil
}

// Deadline reads the earliest deadline of an encoded row, in Unix milliseconds. ok is false if the row has none or cannot
// be decoded. Only this field is decoded, because Deadline is called for every row that is written or recovered.
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
