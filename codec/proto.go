package codec

import (
	"fmt"
	"reflect"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Proto returns the codec of the Protobuf message M, a pointer to a generated message. Messages for the old
// github.com/golang/protobuf API work too.
//
// The encoding is deterministic within one build. Unknown fields are kept. A zero-length value is the message with no
// fields set. Encoding a nil message returns an error that wraps ErrType, because it would be read as a tombstone.
//
// Proto panics if M alone does not determine the message type, as for interfaces and *dynamicpb.Message: use ProtoLike.
func Proto[M protoadapt.MessageV1]() Codec[M] {
	var none M
	if t := reflect.TypeFor[M](); t.Kind() != reflect.Pointer {
		panic(fmt.Sprintf("codec: Proto of %s: want a pointer to a generated message", t))
	}
	return ProtoLike(none)
}

// ProtoLike is like Proto, for messages of the prototype's message type, such as a *dynamicpb.Message. The prototype is
// not kept. ProtoLike panics if the prototype has no message type, like a nil *dynamicpb.Message.
func ProtoLike[M protoadapt.MessageV1](prototype M) (c Codec[M]) {
	defer func() {
		if r := recover(); r != nil {
			panic(fmt.Sprintf("codec: %s has no message type", typeName[M]()))
		}
	}()
	t := protoadapt.MessageV2Of(prototype).ProtoReflect().Type()
	_ = t.New().Descriptor().FullName()
	return Of[M](protoFormat[M]{message: t})
}

type protoFormat[M protoadapt.MessageV1] struct{ message protoreflect.MessageType }

func (f protoFormat[M]) Marshal(v M) ([]byte, error) {
	m := protoadapt.MessageV2Of(v)
	if m == nil || !m.ProtoReflect().IsValid() {
		return nil, fmt.Errorf("%w: nil %s", ErrType, typeName[M]())
	}
	if got := m.ProtoReflect().Descriptor().FullName(); got != f.message.Descriptor().FullName() {
		return nil, fmt.Errorf("%w: got %s, want %s", ErrType, got, f.message.Descriptor().FullName())
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("%w: encode %s", ErrMismatch, f.message.Descriptor().FullName())
	}
	if raw == nil {
		raw = []byte{}
	}
	return raw, nil
}

func (f protoFormat[M]) Unmarshal(raw []byte) (M, error) {
	var none M
	m := f.message.New().Interface()
	if err := proto.Unmarshal(raw, m); err != nil {
		// Old messages may have their own Unmarshal method, whose error may quote the payload: it is not included.
		return none, fmt.Errorf("%w: decode %s", ErrMalformed, f.message.Descriptor().FullName())
	}
	return protoadapt.MessageV1Of(m).(M), nil
}
