package turn

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
)

func TestBoundIsAtLeastTheSizeOfARow(t *testing.T) {
	require.GreaterOrEqual(t, new(State).bound(), proto.Size(new(State)))
	full := &State{}
	fill(full.ProtoReflect(), func(protoreflect.FieldDescriptor) bool { return true }, 1000)
	require.GreaterOrEqual(t, full.bound(), proto.Size(full), "a field has no bound")
	for _, part := range []*OpenTurn{{Stream: &TurnStream{}}, {Compaction: &Compacting{}}} {
		s := &State{Turn: part}
		part.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			v.Message().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 900, protowire.BytesType), strings.Repeat("u", 1000)))
			return true
		})
		require.GreaterOrEqual(t, s.bound(), proto.Size(s), "unknown fields have no bound")
	}
	rapid.Check(t, func(t *rapid.T) {
		s := &State{}
		length := rapid.SampledFrom([]int{0, 1, 127, 128, 1000}).Draw(t, "length")
		fill(s.ProtoReflect(), func(protoreflect.FieldDescriptor) bool { return rapid.Bool().Draw(t, "set") }, length)
		require.GreaterOrEqual(t, s.bound(), proto.Size(s))
		require.Less(t, s.bound(), 2*proto.Size(s)+4000, "it is of no use")
	})
}

// fill sets the fields of a message that set names, to values as large as they may be, and texts of a length.
func fill(m protoreflect.Message, set func(protoreflect.FieldDescriptor) bool, length int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if !set(f) {
			continue
		}
		if !f.IsList() {
			if f.Message() != nil {
				fill(m.Mutable(f).Message(), set, length)
			} else {
				m.Set(f, largest(f, length))
			}
			continue
		}
		list := m.Mutable(f).List()
		for range 3 {
			if f.Message() != nil {
				fill(list.AppendMutable().Message(), set, length)
			} else {
				list.Append(largest(f, length))
			}
		}
	}
	m.SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 900, protowire.BytesType), strings.Repeat("u", length)))
}

func largest(f protoreflect.FieldDescriptor, length int) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(bytes.Repeat([]byte("b"), length))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(strings.Repeat("s", length))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(-1)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(-1)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(math.MaxUint32)
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(math.MaxUint64)
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(1)
	default:
		return protoreflect.ValueOfInt64(-1)
	}
}
