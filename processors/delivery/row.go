package delivery

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
var ErrRowVersion = errors.New("delivery: row has a newer format")

// fieldDeadline is the number of State.deadline_ms.
const fieldDeadline = 2

// versioned is a row of either table.
type versioned interface {
	proto.Message
	GetVersion() uint32
}

// EncodeState writes a row.
func EncodeState(s *State) ([]byte, error) { return encode(s) }

// DecodeState reads a row. It refuses one of a newer format.
func DecodeState(raw []byte) (*State, error) { return decode(raw, &State{}) }

func encode(row versioned) ([]byte, error) {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(row)
	if err != nil {
		return nil, fmt.Errorf("delivery: encode row: %w", err)
	}
	return raw, nil
}

func decode[T versioned](raw []byte, row T) (none T, err error) {
	if err := proto.Unmarshal(raw, row); err != nil {
		return none, fmt.Errorf("delivery: decode row: %w", err)
	}
	if v := row.GetVersion(); v > rowVersion {
		return none, fmt.Errorf("%w: %d, this build reads up to %d", ErrRowVersion, v, rowVersion)
	}
	return row, nil
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
