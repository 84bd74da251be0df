package rows

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// ErrVersion is wrapped by the error of a row that a newer build wrote, or that needs a runtime which keeps parts of rows. The record
// is not dead-lettered: another build can handle it.
var ErrVersion = fmt.Errorf("%w: the row has a newer format", runtimeapi.ErrKeepRecord)

// Message is the Protobuf message of a row.
type Message interface {
	proto.Message
	GetVersion() uint32
}

// Table is the format of the rows of a group table. It is a codec.Format.
type Table[T Message] struct {
	// Name is the name of the capability, for errors.
	Name string
	// Version is the highest version of a row that this build reads. Raise it only if an older build could not keep a promise with
	// a newer row. A new field is no reason: unknown fields survive a rewrite.
	Version uint32
	// Loaded, if it is set, completes a row that was decoded, or reports why it cannot be used.
	Loaded func(T) error
}

// Marshal encodes a row. Equal rows have equal bytes.
func (t Table[T]) Marshal(row T) ([]byte, error) {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(row)
	if err != nil {
		return nil, fmt.Errorf("%s: encode row: %w", t.Name, err)
	}
	return raw, nil
}

// Unmarshal decodes a row. The error wraps ErrVersion if the row has a higher version than this build reads.
func (t Table[T]) Unmarshal(raw []byte) (none T, err error) {
	row, _ := none.ProtoReflect().New().Interface().(T) // a message of the type T
	if err := proto.Unmarshal(raw, row); err != nil {
		return none, fmt.Errorf("%s: decode row: %w", t.Name, err)
	}
	if v := row.GetVersion(); v > t.Version {
		return none, fmt.Errorf("%s: %w: version %d, this build reads up to %d", t.Name, ErrVersion, v, t.Version)
	}
	if t.Loaded != nil {
		if err := t.Loaded(row); err != nil {
			return none, err
		}
	}
	return row, nil
}

// Codec returns the codec of the table.
func (t Table[T]) Codec() codec.Codec[T] { return codec.Of[T](t) }

// Of returns the row in a value of the table, as Processor.Get, a goka.View or a test harness returns it, or the row itself: nil for
// nil, which is a key without a row. The error is that of Unmarshal, or wraps codec.ErrType if the value is of another type.
func (t Table[T]) Of(value any) (none T, err error) {
	switch v := value.(type) {
	case nil:
		return none, nil
	case T:
		return v, nil
	case codec.Decoded[T]:
		return v.Value, v.Err
	default:
		return none, fmt.Errorf("%w: got %T, want a row of package %s", codec.ErrType, value, t.Name)
	}
}
